// What a chart says in words: each line's name and value, and why a line is missing.
import { fillList, make, setAttribute, setText } from "./dom.js";
import { ABSENT, told } from "./format.js";
import { COLOURS, rowAt } from "./lines.js";
import { strokeOf } from "./traces.js";

const MOST_REASONS = 3;

export class Legend {
  constructor(root) {
    this.list = root.querySelector("[data-legend]");
    this.absent = root.querySelector("[data-absent]");
  }

  /** `at` is the moment under the cursor, or null for the newest value. */
  show(lines, unit, at, now) {
    fillList(this.list, lines, item, (element, line) => {
      const [swatch, name, value] = element.children;
      swatch.firstChild.style.stroke = `var(--chart-${(line.colour % COLOURS) + 1})`;
      setAttribute(swatch.firstChild, "stroke-dasharray", strokeOf(line.kind));
      setText(name, line.name);
      setText(value, textOf(line, unit, at, now));
      element.classList.toggle("is-absent", value.textContent === ABSENT);
    });
    this.explain(lines, at, now);
  }

  /** Those without a value and the reason that they share, each reason once. */
  explain(lines, at, now) {
    const reasons = new Map();
    if (at === null) {
      for (const line of lines) {
        if (!line.reason || (line.column && indexOf(line, at, now) >= 0 && line.v[indexOf(line, at, now)] !== null)) continue;
        reasons.set(line.reason, [...(reasons.get(line.reason) ?? []), line.name]);
      }
    }
    const told = [...reasons].slice(0, MOST_REASONS);
    fillList(this.absent, told, () => make("li"), (element, [reason, names]) => {
      setText(element, names.length === lines.length ? reason : `${names.join(", ")}: ${reason}`);
    });
  }
}

function indexOf(line, at, now) {
  if (at !== null) return rowAt(line, at);
  const last = line.t.length - 1;
  // A rate's newest row waits for the next; a percentile's minute may have had no request.
  const reach = line.stepped ? 2 * line.step : Math.max(5, 2.5 * line.step);
  return last >= 0 && now - line.t[last] <= reach ? last : -1;
}

function textOf(line, unit, at, now) {
  const index = indexOf(line, at, now);
  if (index < 0) return ABSENT;
  return told(line.v[index], unit, { kind: line.kind, beyond: line.beyond?.(index) ?? false });
}

function item() {
  const svg = "http://www.w3.org/2000/svg";
  const element = document.createElement("li");
  const swatch = document.createElementNS(svg, "svg");
  swatch.setAttribute("class", "swatch");
  swatch.setAttribute("viewBox", "0 0 18 4");
  swatch.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(svg, "line");
  for (const [key, value] of Object.entries({ x1: 0, x2: 18, y1: 2, y2: 2 })) line.setAttribute(key, value);
  swatch.append(line);
  element.append(swatch, make("span"), make("strong"));
  return element;
}
