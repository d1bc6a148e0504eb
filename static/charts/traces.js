// Lines as Plotly wants them. Estimates are dashed, declarations dotted, a band is what a value ranged
// over or may really be.
import { COLOURS } from "./lines.js";
import { escape, faded, localTime } from "./plotly.js";

const DASHES = { estimated: "6px,4px", declared: "2px,3px" };

export const strokeOf = (kind) => ({ estimated: "5 3", declared: "2 3" })[kind] ?? "";

export function tracesOf(lines, scale, theme) {
  const bands = lines.filter((line) => line.lo && line.hi).map((line) => band(line, scale, theme));
  return [...bands, ...lines.map((line) => trace(line, scale, theme))];
}

const colourOf = (line, theme) => theme.lines[line.colour % COLOURS];

function trace(line, { factor, name }, theme) {
  const about = line.kind === "estimated" ? "≈ " : "";
  const said = line.beyond ? "%{customdata}" : about;
  return {
    type: "scatter",
    ...dots(line.v),
    name: line.name,
    x: line.t.map(localTime),
    y: line.v.map((value) => (value === null ? null : value * factor)),
    customdata: line.beyond ? line.v.map((_, index) => (line.beyond(index) ? "> " : about)) : undefined,
    line: {
      color: colourOf(line, theme),
      width: line.colour >= COLOURS ? 1.1 : 1.8,
      dash: DASHES[line.kind] ?? "solid",
      shape: line.stepped ? "hv" : "linear",
    },
    connectgaps: false,
    hovertemplate: `${said}%{y:.3~g} ${escape(name)}<extra>${escape(line.name)}</extra>`,
  };
}

/** A value without neighbours is no line, but it is there. */
function dots(values) {
  let any = false;
  const size = values.map((value, index) => {
    const alone = value !== null && (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null;
    any ||= alone;
    return alone ? 4 : 0;
  });
  return any ? { mode: "lines+markers", marker: { size, line: { width: 0 } } } : { mode: "lines" };
}

/** One closed outline for each stretch without a gap. */
function band(line, { factor }, theme) {
  const x = [];
  const y = [];
  let start = 0;
  const close = (end) => {
    for (let i = start; i < end; i += 1) x.push(localTime(line.t[i])), y.push(line.hi[i] * factor);
    for (let i = end - 1; i >= start; i -= 1) x.push(localTime(line.t[i])), y.push(line.lo[i] * factor);
    if (end > start) x.push(null), y.push(null);
  };
  line.t.forEach((_, index) => {
    if (line.lo[index] !== null && line.hi[index] !== null) return;
    close(index);
    start = index + 1;
  });
  close(line.t.length);
  return {
    type: "scatter",
    mode: "lines",
    x,
    y,
    fill: "toself",
    fillcolor: faded(colourOf(line, theme), 0.16),
    line: { width: 0 },
    hoverinfo: "skip",
    showlegend: false,
    connectgaps: false,
  };
}

/** Shares by label over time, as a map: what each label had of everything in each row. */
export function heatOf(unordered, theme) {
  const lines = [...unordered].sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  const labels = lines.map((line) => line.name);
  const t = lines[0].t;
  const totals = t.map((_, index) => lines.reduce((sum, line) => sum + (line.v[index] ?? 0), 0));
  const z = lines.map((line) =>
    line.v.map((value, index) => (value === null || !totals[index] ? null : (value / totals[index]) * 100)),
  );
  return {
    type: "heatmap",
    x: t.map(localTime),
    y: labels,
    z,
    zmin: 0,
    hoverongaps: false,
    colorscale: [
      [0, theme.sunken],
      [1, theme.accent],
    ],
    showscale: false,
    hovertemplate: `%{y}: %{z:.3~g} %<extra></extra>`,
  };
}
