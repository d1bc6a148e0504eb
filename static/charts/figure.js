// One chart: Plotly below, a cursor that all charts of the page share, and a legend in words for whoever
// cannot see the lines.
import { setAttribute, setText } from "./dom.js";
import { how, scaleOf, short } from "./format.js";
import { Legend } from "./legend.js";
import { linesOf } from "./lines.js";
import { CONFIG, faded, localTime, MARGIN, tickFormat, unlocalTime } from "./plotly.js";
import { heatOf, tracesOf } from "./traces.js";

const MOST_KINDS = 2;

export class Figure {
  constructor(root, spec) {
    this.root = root;
    this.spec = spec;
    this.box = root.querySelector("[data-box]");
    this.plot = root.querySelector("[data-plot]");
    this.empty = root.querySelector("[data-empty]");
    this.unit = root.querySelector("[data-unit]");
    this.how = root.querySelector("[data-how]");
    this.cursor = root.querySelector("[data-cursor]");
    this.legend = new Legend(root);
    this.visible = false;
    this.lines = [];
    this.span = { from: 0, to: 1 };
  }

  /** Words first: they are there whether or not anything can be drawn. */
  update(store, span, at) {
    this.span = span;
    this.lines = linesOf(this.spec, store);
    const drawable = this.lines.filter((line) => line.v.some(Number.isFinite));
    this.scale = this.scaleFor(drawable);
    setText(this.unit, !drawable.length ? "" : this.spec.heat ? "%" : this.scale.name);
    this.tell(at, store.now());
    setText(this.how, kinds(this.lines));
    const nothing = drawable.length === 0;
    this.plot.hidden = nothing;
    this.empty.hidden = !nothing;
    this.root.classList.toggle("is-empty", nothing);
    if (nothing) setText(this.empty, this.why());
    return drawable;
  }

  tell(at, now) {
    if (this.spec.heat) return;
    this.legend.show(this.lines, this.spec.unit, at, now);
  }

  /** Why nothing is drawn: the one reason that everything shares, else the chart's own words. */
  why() {
    const reasons = new Set(this.lines.filter((line) => line.column && line.reason).map((line) => line.reason));
    return reasons.size === 1 ? [...reasons][0] : this.spec.empty;
  }

  scaleFor(lines) {
    const most = Math.max(0, ...lines.map((line) => Math.max(extreme(line.v, 1), extreme(line.hi ?? [], 1), extreme(line.v, -1))));
    return scaleOf(this.spec.unit, most);
  }

  draw(plotly, store, { span, theme, at, markers, key }) {
    const drawable = this.update(store, span, at);
    this.place(at);
    if (!drawable.length || !this.visible) return false;
    const traces = this.spec.heat ? [heatOf(drawable, theme)] : tracesOf(drawable, this.scale, theme);
    plotly.react(this.plot, traces, this.layout(store, drawable, span, theme, markers, key), CONFIG);
    if (!this.drawn) this.plot.on("plotly_relayout", (change) => this.onRelayout(change));
    this.drawn = true;
    return true;
  }

  onRelayout(change) {
    const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (from === undefined || to === undefined) return;
    const dates = [from, to].map(unlocalTime).sort((a, b) => a - b);
    this.root.dispatchEvent(new CustomEvent("zoomed", { bubbles: true, detail: { from: dates[0], to: dates[1] } }));
  }

  layout(store, lines, { from, to }, theme, markers, key) {
    const quiet = "rgba(0,0,0,0)";
    return {
      autosize: true,
      uirevision: key,
      margin: MARGIN,
      paper_bgcolor: quiet,
      plot_bgcolor: quiet,
      font: { family: theme.font, size: 11, color: theme.text },
      showlegend: false,
      // A finger scrolls the page; whoever has a pointer draws a box over the time that is meant.
      dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom",
      hovermode: this.spec.heat ? "closest" : "x unified",
      hoverlabel: {
        bgcolor: theme.raised,
        bordercolor: theme.line,
        font: { family: theme.font, size: 12, color: theme.strong },
      },
      shapes: markers.map((marker) => shape(marker, theme)),
      xaxis: {
        type: "date",
        range: [localTime(from), localTime(to)],
        tickformat: tickFormat(to - from),
        hoverformat: to - from > 86_400 ? "%Y-%m-%d %H:%M" : "%H:%M:%S",
        nticks: 5,
        showgrid: false,
        zeroline: false,
        ticks: "outside",
        ticklen: 5,
        tickcolor: quiet,
      },
      yaxis: {
        ...(this.spec.heat ? { type: "category" } : this.axis(store, lines)),
        gridcolor: theme.grid,
        zeroline: false,
        fixedrange: true,
        ticks: "outside",
        ticklen: 5,
        tickcolor: quiet,
      },
    };
  }

  /** To what cannot be exceeded where there is such a thing, else to a round number. */
  axis(store, lines) {
    const { factor } = this.scale;
    const top = Math.max(...lines.map((line) => Math.max(extreme(line.v, 1), line.hi ? extreme(line.hi, 1) : -Infinity)));
    const low = Math.min(...lines.map((line) => -Math.max(extreme(line.v, -1), line.lo ? extreme(line.lo, -1) : -Infinity)));
    if (!this.spec.zero || low < 0) return between(low * factor, top * factor);
    const { ceiling, unit } = this.spec;
    if (typeof ceiling === "number") return ticked(ceiling * factor, ceiling * factor);
    const total = ceiling ? this.ceilingOf(store, ceiling) * factor : 0;
    if (total > 0) return ticked(total, roundUp(total * 0.7, 0));
    const most = roundUp(top * factor * 1.08, unit === "requests" ? 4 : 0);
    return ticked(most, most);
  }

  ceilingOf(store, metric) {
    const found = [...store.topics.values()]
      .filter((track) => this.spec.roles.includes(track.role))
      .flatMap((track) => [...track.columns.values()])
      .filter((column) => column.metric === metric);
    return Math.max(0, ...found.map((column) => extreme(column.v, 1)));
  }

  // --- The cursor -----------------------------------------------------------------------------

  /** The moment under a point of the page; null beside the axis. */
  momentAt(clientX) {
    const rect = this.box.getBoundingClientRect();
    const share = (clientX - rect.left - MARGIN.l) / (rect.width - MARGIN.l - MARGIN.r);
    if (this.plot.hidden || share < 0 || share > 1) return null;
    return this.span.from + share * (this.span.to - this.span.from);
  }

  place(at) {
    const { from, to } = this.span;
    const shown = at !== null && at >= from && at <= to && !this.plot.hidden;
    this.cursor.hidden = !shown;
    if (!shown) return;
    const width = this.box.clientWidth - MARGIN.l - MARGIN.r;
    this.cursor.style.transform = `translateX(${MARGIN.l + ((at - from) / (to - from)) * width}px)`;
  }

  describe(text) {
    setAttribute(this.root, "aria-description", text);
  }
}

function kinds(lines) {
  const said = new Set(lines.filter((line) => line.kind !== "unavailable").map((line) => how(line.kind, line.source)));
  return [...said].slice(0, MOST_KINDS).join(" | ");
}

function shape(marker, theme) {
  const colour = { error: theme.bad, warning: theme.warn }[marker.level] ?? theme.faint;
  const base = { yref: "paper", y0: 0, y1: 1, x0: localTime(marker.at), layer: "below" };
  if (marker.until && marker.until - marker.at > 1) {
    const fill = faded(colour, 0.1);
    return { ...base, type: "rect", x1: localTime(marker.until), fillcolor: fill, line: { width: 0 } };
  }
  return { ...base, type: "line", x1: localTime(marker.at), line: { color: faded(colour, 0.55), width: 1 } };
}

/** The greatest of `sign` times each value; -Infinity without any. */
function extreme(values, sign) {
  let most = -Infinity;
  for (const value of values) if (value !== null && value * sign > most) most = value * sign;
  return most;
}

/** Three ticks: nothing, half, and `last`. */
function ticked(top, last) {
  const tickvals = [0, last / 2, last];
  return { range: [0, top], tickvals, ticktext: tickvals.map((value) => short(value)) };
}

function between(low, high) {
  const room = Math.max((high - low) * 0.15, Math.abs(high) * 0.02, 0.5);
  return { range: [low - room, high + room], nticks: 4, tickformat: ",.4~r" };
}

function roundUp(value, least) {
  if (value <= least || value <= 0) return least || 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find((nice) => nice * power >= value - 1e-12);
  return (step ?? 10) * power;
}
