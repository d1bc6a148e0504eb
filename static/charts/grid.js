// A large fleet at a glance: a row a node, a cell an accelerator, on one canvas. What has no reading is
// hatched, and a list beside it names the highest in words.
import { fillList, make, setText } from "./dom.js";
import { told } from "./format.js";

const CELL = 15;
const GAP = 2;
const ROW = 19;
const LABEL = 92;
const BETWEEN = 22;
const WORST = 12;

export class Grid {
  constructor(root, { nodes, metrics }) {
    this.root = root;
    this.nodes = nodes;
    this.metrics = new Map(metrics.map((metric) => [metric.metric, metric]));
    this.canvas = root.querySelector("[data-grid-canvas]");
    this.tip = root.querySelector("[data-grid-tip]");
    this.select = root.querySelector("[data-grid-metric]");
    this.values = new Map(); // node pk -> device index -> number or null
    this.devices = Math.max(1, ...nodes.map((node) => node.devices));
    this.asked = new URLSearchParams(window.location.search).get("grid");
    if (this.metrics.has(this.asked)) this.select.value = this.asked;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const found = this.cellAt(event);
      if (found) window.location.href = found.node.url;
    });
    new ResizeObserver(() => this.schedule()).observe(this.canvas.parentElement);
    document.addEventListener("themechange", () => {
      this.theme = null;
      this.schedule();
    });
  }

  get metric() {
    return this.metrics.get(this.select.value);
  }

  take({ metric, cells }) {
    if (metric !== this.metric.metric) return;
    this.values = new Map();
    for (const [pk, index, number] of cells) {
      if (!this.values.has(pk)) this.values.set(pk, new Map());
      this.values.get(pk).set(index, number);
      this.devices = Math.max(this.devices, index + 1);
    }
    this.schedule();
  }

  schedule() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
      this.list();
    });
  }

  known() {
    return this.nodes.flatMap((node) =>
      [...(this.values.get(node.pk) ?? [])].filter(([, number]) => number !== null).map(([index, number]) => ({ node, index, number })),
    );
  }

  // --- The canvas -----------------------------------------------------------------------------

  measure() {
    const width = this.canvas.parentElement.clientWidth;
    const block = LABEL + this.devices * (CELL + GAP);
    const columns = Math.max(1, Math.floor((width + BETWEEN) / (block + BETWEEN)));
    const rows = Math.ceil(this.nodes.length / columns);
    return { width, block, columns, rows, height: rows * ROW };
  }

  draw() {
    const shape = (this.shape = this.measure());
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = shape.width * ratio;
    this.canvas.height = shape.height * ratio;
    this.canvas.style.width = `${shape.width}px`;
    this.canvas.style.height = `${shape.height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    this.theme ??= readColours();
    const numbers = this.known().map((cell) => cell.number);
    this.top = this.metric.top ?? Math.max(0, ...numbers);
    pen.textBaseline = "middle";
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const hatch = hatching(pen, this.theme);
    this.nodes.forEach((node, place) => this.drawNode(pen, node, place, hatch));
    this.legend(numbers);
  }

  drawNode(pen, node, place, hatch) {
    const { x, y } = this.placeOf(place);
    pen.fillStyle = node.online ? this.theme.text : this.theme.faint;
    pen.fillText(shortened(pen, node.name, LABEL - 8), x, y + CELL / 2);
    const count = Math.max(node.devices, this.values.get(node.pk)?.size ?? 0);
    for (let index = 0; index < count; index += 1) {
      const number = this.values.get(node.pk)?.get(index) ?? null;
      pen.fillStyle = number === null ? hatch : mixed(this.theme.ramp, this.top ? number / this.top : 0);
      pen.fillRect(x + LABEL + index * (CELL + GAP), y, CELL, CELL);
    }
  }

  /** Down the columns, so that neighbours in name are neighbours on the page. */
  placeOf(place) {
    const { rows, block } = this.shape;
    return { x: Math.floor(place / rows) * (block + BETWEEN), y: (place % rows) * ROW + 1 };
  }

  cellAt({ offsetX, offsetY }) {
    if (!this.shape) return null;
    const { block, rows } = this.shape;
    const column = Math.floor(offsetX / (block + BETWEEN));
    const node = this.nodes[column * rows + Math.floor(offsetY / ROW)];
    const inside = offsetX - column * (block + BETWEEN);
    if (!node || inside > block) return null;
    return { node, index: inside < LABEL ? null : Math.floor((inside - LABEL) / (CELL + GAP)) };
  }

  point(event) {
    const found = this.cellAt(event);
    this.tip.hidden = !found;
    this.canvas.style.cursor = found ? "pointer" : "default";
    if (!found) return;
    setText(this.tip, found.index === null ? found.node.name : `${found.node.name} · ${found.index}: ${this.say(found)}`);
    const left = Math.min(event.offsetX + 14, this.shape.width - this.tip.offsetWidth - 4);
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${event.offsetY + 16}px)`;
  }

  say({ node, index }) {
    const number = this.values.get(node.pk)?.get(index) ?? null;
    return number === null ? gettext("no reading") : told(number, this.metric.unit);
  }

  // --- In words -------------------------------------------------------------------------------

  legend(numbers) {
    const { unit } = this.metric;
    setText(this.root.querySelector("[data-grid-low]"), numbers.length ? told(0, unit) : "");
    setText(this.root.querySelector("[data-grid-high]"), numbers.length ? told(this.top, unit) : "");
    const all = this.nodes.reduce((sum, node) => sum + Math.max(node.devices, this.values.get(node.pk)?.size ?? 0), 0);
    setText(
      this.root.querySelector("[data-grid-count]"),
      interpolate(gettext("%s of %s accelerators with a reading"), [numbers.length, all]),
    );
  }

  list() {
    const highest = this.known().sort((a, b) => b.number - a.number).slice(0, WORST);
    setText(document.querySelector("[data-worst-title]"), this.metric.label);
    setText(
      document.querySelector("[data-worst-note]"),
      highest.length ? "" : gettext("No accelerator has a reading of it now."),
    );
    fillList(document.querySelector("[data-worst]"), highest, row, (element, { node, index, number }) => {
      const [name, device, value] = element.children;
      name.firstChild.href = node.url;
      setText(name.firstChild, node.name);
      setText(device, String(index));
      setText(value, told(number, this.metric.unit));
    });
  }
}

function row() {
  const element = make("tr");
  const name = make("td");
  name.append(make("a"));
  element.append(name, make("td"), make("td", "number"));
  return element;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const token = (name) => style.getPropertyValue(name).trim();
  return {
    ramp: ["--heat-1", "--heat-2", "--heat-3"].map((name) => channels(token(name))),
    text: token("--text"),
    faint: token("--faint"),
    line: token("--line-strong"),
    sunken: token("--sunken"),
  };
}

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function mixed([low, middle, high], share) {
  const [from, to, part] = share < 0.5 ? [low, middle, share * 2] : [middle, high, Math.min(1, share) * 2 - 1];
  return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * Math.max(0, part))).join(",")})`;
}

function hatching(pen, theme) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.fillStyle = theme.sunken;
  brush.fillRect(0, 0, 6, 6);
  brush.strokeStyle = theme.line;
  brush.beginPath();
  for (const shift of [-6, 0, 6]) {
    brush.moveTo(shift - 1, 7);
    brush.lineTo(shift + 7, -1);
  }
  brush.stroke();
  return pen.createPattern(tile, "repeat");
}

function shortened(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = text;
  while (kept.length > 1 && pen.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return `${kept}…`;
}
