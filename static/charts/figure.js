// One chart: Plotly below, and a legend that says the same in words for whoever cannot see it.
import { how, unitName, withUnit } from "./format.js";

const DASHES = ["solid", "5px,3px", "2px,3px"];
const STROKES = ["", "5 3", "2 3"];
const COLOURS = 6;
const CONFIG = { displayModeBar: false, displaylogo: false, doubleClick: false, responsive: true };

let loading = null;

/** Plotly from our own server, once a page and only on pages that draw. */
export function loadPlotly(url) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error(`${url} did not load`)));
    document.head.append(script);
  });
  return loading;
}

export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const token = (name) => style.getPropertyValue(name).trim();
  return {
    lines: Array.from({ length: COLOURS }, (_, index) => token(`--chart-${index + 1}`)),
    grid: token("--chart-grid"),
    text: token("--chart-text"),
    raised: token("--raised"),
    line: token("--line-strong"),
    strong: token("--text"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

export class Figure {
  constructor(root, spec) {
    this.spec = spec;
    this.plot = root.querySelector("[data-plot]");
    this.empty = root.querySelector("[data-empty]");
    this.legend = root.querySelector("[data-legend]");
    this.how = root.querySelector("[data-how]");
    this.visible = true;
    this.drawn = false;
  }

  /** Lines with their style: colour tells subjects apart, dashes do so again for who sees no colour. */
  lines(store) {
    const tracks = store.ofRole(this.spec.role);
    const several = this.spec.lines.length > 1;
    return tracks.flatMap((track, t) =>
      this.spec.lines.map((line, l) => ({
        track,
        metric: line.metric,
        name: several ? (tracks.length > 1 ? `${track.label} · ${line.name}` : line.name) : track.label,
        colour: several && tracks.length === 1 ? l * 2 : (track.rank ?? t),
        dash: (several ? l : t) % DASHES.length,
      })),
    );
  }

  update(store) {
    const lines = this.lines(store);
    const latest = lines.map((line) => store.latest(line.track, line.metric));
    this.tell(lines, latest);
    const known = latest.find((value) => value.kind && value.kind !== "unavailable");
    setText(this.how, known ? how(known.kind, known.source) : "");
    const drawable = lines.filter(({ track, metric }) => track.columns[metric]?.some(Number.isFinite));
    this.plot.hidden = drawable.length === 0;
    this.empty.hidden = drawable.length > 0;
    if (!drawable.length) setText(this.empty, this.why(latest));
    return drawable;
  }

  /** Why nothing is drawn: the one reason that everything shares, else the chart's own words. */
  why(latest) {
    const reasons = new Set(latest.filter((v) => v.reason && !v.missing).map((v) => v.reason));
    return reasons.size === 1 ? [...reasons][0] : this.spec.empty;
  }

  tell(lines, latest) {
    while (this.legend.children.length > lines.length) this.legend.lastChild.remove();
    lines.forEach((line, index) => {
      const item = this.legend.children[index] ?? this.legend.appendChild(legendItem());
      const [swatch, name, value] = item.children;
      swatch.firstChild.style.stroke = `var(--chart-${(line.colour % COLOURS) + 1})`;
      swatch.firstChild.setAttribute("stroke-dasharray", STROKES[line.dash]);
      setText(name, line.name);
      setText(value, withUnit(scaled(latest[index].value, this.spec.factor), this.spec.unit));
      item.title = latest[index].value === null ? latest[index].reason : "";
    });
  }

  draw(plotly, store, span, theme) {
    const lines = this.update(store);
    if (!lines.length || (this.drawn && !this.visible)) return;
    const traces = lines.map((line) => this.trace(line, theme));
    const layout = this.layout(store, lines, span, theme);
    plotly.react(this.plot, traces, layout, CONFIG);
    this.drawn = true;
  }

  trace(line, theme) {
    const colour = theme.lines[line.colour % COLOURS];
    const unit = unitName(this.spec.unit);
    const factor = this.spec.factor;
    return {
      type: "scatter",
      mode: "lines",
      name: line.name,
      x: line.track.t.map(localTime),
      y: line.track.columns[line.metric].map((value) => scaled(value, factor)),
      line: { color: colour, width: 1.8, dash: DASHES[line.dash] },
      connectgaps: false,
      hovertemplate: `%{y:.3~g} ${unit}<extra>${escape(line.name)}</extra>`,
    };
  }

  layout(store, lines, span, theme) {
    const now = store.now();
    const { top, ticks } = this.axis(lines);
    return {
      autosize: true,
      margin: { l: 40, r: 6, t: 8, b: 25 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: theme.font, size: 11, color: theme.text },
      showlegend: false,
      dragmode: false,
      hovermode: "x unified",
      hoverlabel: {
        bgcolor: theme.raised,
        bordercolor: theme.line,
        font: { family: theme.font, size: 12, color: theme.strong },
      },
      xaxis: {
        type: "date",
        range: [localTime(now - span * 60), localTime(now)],
        tickformat: "%H:%M",
        hoverformat: "%H:%M:%S",
        nticks: 5,
        showgrid: false,
        zeroline: false,
        fixedrange: true,
        ticks: "outside",
        ticklen: 5,
        tickcolor: "rgba(0,0,0,0)",
      },
      yaxis: {
        range: [0, top],
        tickvals: ticks,
        gridcolor: theme.grid,
        zeroline: false,
        fixedrange: true,
        tickformat: "~s",
        ticks: "outside",
        ticklen: 5,
        tickcolor: "rgba(0,0,0,0)",
      },
    };
  }

  /** To what cannot be exceeded where there is such a thing, else to a round number. */
  axis(lines) {
    const { ceiling, factor, unit } = this.spec;
    const peakOf = (metric) =>
      Math.max(...lines.map((line) => largest(line.track.columns[metric ?? line.metric] ?? []))) * factor;
    const round = roundUp(peakOf() * 1.08, unit === "requests" ? 4 : 0);
    if (typeof ceiling === "number") return ticked(ceiling * factor, ceiling * factor);
    const total = ceiling ? peakOf(ceiling) : 0;
    return total > 0 ? ticked(total, roundUp(total * 0.7, 0)) : ticked(round, round);
  }
}

// Plotly writes times as UTC; the reader's clock is meant.
function localTime(seconds) {
  return seconds * 1000 - new Date(seconds * 1000).getTimezoneOffset() * 60_000;
}

function scaled(value, factor) {
  return value === null || value === undefined ? null : value * factor;
}

function largest(column) {
  let most = 0;
  for (const value of column) if (value > most) most = value;
  return most;
}

/** Three ticks: nothing, half, and `last`. */
function ticked(top, last) {
  return { top, ticks: [0, last / 2, last] };
}

function roundUp(value, least) {
  if (value <= least || value <= 0) return least || 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find((nice) => nice * power >= value);
  return step * power;
}

function escape(text) {
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function legendItem() {
  const svg = "http://www.w3.org/2000/svg";
  const item = document.createElement("li");
  const swatch = document.createElementNS(svg, "svg");
  swatch.setAttribute("class", "swatch");
  swatch.setAttribute("viewBox", "0 0 18 4");
  swatch.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(svg, "line");
  for (const [key, value] of Object.entries({ x1: 0, x2: 18, y1: 2, y2: 2 })) line.setAttribute(key, value);
  swatch.append(line);
  const name = document.createElement("span");
  const value = document.createElement("strong");
  item.append(swatch, name, value);
  return item;
}
