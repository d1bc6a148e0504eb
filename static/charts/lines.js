// From what the page knows to what one chart draws: lines with their style, or one band for too many.
import { GAP, matches } from "./store.js";

export const MOST_LINES = 15;
export const COLOURS = 8;
const BAND_LINES = 7; // a band is a trace too, and a figure has at most 16

/** The lines of a chart; `t` and the columns are in stored units, rates worked out. */
export function linesOf(spec, store) {
  const found = spec.roles.flatMap((role) => roleLines(spec, role, store));
  colour(found);
  if (spec.heat) return found;
  if (found.length > MOST_LINES) return fewer(found, spec);
  const banded = found.length <= BAND_LINES;
  for (const line of found) if (!banded && !line.always) line.lo = line.hi = null;
  return found;
}

function roleLines(spec, role, store) {
  const tracks = store.ofRole(role);
  const group = store.ofRole("group").find((track) => track.topic === `group:${role}`);
  if (group) return spec.lines.flatMap((line) => groupLine(line, group));
  const called = distinct(tracks.map((track) => track.label));
  const found = tracks.map((track, index) => trackLines(spec, track, store, tracks.length > 1, called[index]));
  const any = found.some((lines) => lines.length);
  // One of several that says nothing is named; a chart that has nothing at all says so itself.
  return found.flatMap((lines, index) => (lines.length || !any ? lines : [missing(tracks[index], called[index], index)]));
}

/** "accelerator 0 · box-1" without the box, where all of them are in the same one. */
function distinct(labels) {
  const [first, ...others] = labels;
  const from = first?.lastIndexOf(" · ") ?? -1;
  if (from < 0 || !others.length) return labels;
  const ending = first.slice(from);
  return labels.every((label) => label.endsWith(ending)) ? labels.map((label) => label.slice(0, -ending.length)) : labels;
}

function trackLines(spec, track, store, several, called) {
  const own = [];
  const derived = store.derived.get(track.topic);
  for (const line of spec.lines) {
    for (const [source, times] of [[track, track.t], [derived, derived?.t]]) {
      if (!source) continue;
      for (const column of wanted(line, source)) own.push(drawn(line, track, source, column, times));
    }
  }
  const mixed = spec.roles.length > 1 && own.length === 1;
  for (const one of own) one.name = nameOf(one, called, several, mixed);
  return own;
}

const TOTAL = "*";

/** A reading without a label stands for those that have one: it is drawn instead of them, or not at all. */
function wanted(line, source) {
  const label = line.label === TOTAL ? null : line.label;
  const all = [...source.columns.values()].filter((column) => matches(column, line.metric, line.scope, label));
  if (label !== null) return all;
  const total = all.filter((column) => !column.label);
  const parts = all.filter((column) => column.label);
  if (line.label === TOTAL) return total.length ? total : parts;
  return parts.length ? parts : total;
}

function drawn(line, track, source, column, times) {
  const counter = line.rate;
  const v = counter ? rates(times, column.v, line.per) : column.v;
  const band = line.band ? widthOf(source, column, line.band) : null;
  const wide = source.step > 1.5 && column.lo && column.hi && !counter && !isQuantile(column);
  return {
    track,
    column,
    line,
    t: times,
    v,
    lo: band ? shifted(v, band, -1) : wide ? column.lo : null,
    hi: band ? shifted(v, band, 1) : wide ? column.hi : null,
    always: Boolean(band), // what a value may really be is part of it, not decoration
    beyond: isQuantile(column) ? (index) => column.hi !== null && column.v[index] !== null && column.hi[index] === null : null,
    step: source.step,
    stepped: source !== track,
    kind: column.kind,
    source: column.source,
    reason: column.reason,
  };
}

const isQuantile = (column) => column.metric.includes("_quantile_");

function widthOf(source, column, metric) {
  for (const other of source.columns.values()) {
    if (matches(other, metric, column.scope, column.label)) return other.v;
  }
  return null;
}

const shifted = (values, widths, sign) =>
  values.map((value, index) => {
    const width = widths[index];
    return value === null || width === null || width === undefined ? null : value + sign * width;
  });

/** What a counter grew by in `per` seconds; a source that started over leaves a gap. */
export function rates(times, values, per) {
  return values.map((value, index) => {
    const before = index ? values[index - 1] : null;
    if (value === null || before === null || value < before) return null;
    const passed = times[index] - times[index - 1];
    return passed > 0 ? ((value - before) / passed) * per : null;
  });
}

/** `mixed`: the only line of its subject in a chart of several kinds of subjects, whose names suffice. */
function nameOf(one, called, several, mixed) {
  if (mixed) return called;
  const parts = [];
  if (several) parts.push(called);
  if (one.line.name) parts.push(one.line.name);
  if (one.column.label && one.line.label !== one.column.label) parts.push(one.column.label);
  return parts.join(" · ") || called;
}

function missing(track, called, index) {
  return {
    track,
    column: null,
    line: {},
    t: [],
    v: [],
    lo: null,
    hi: null,
    step: 1,
    kind: "unavailable",
    source: "",
    reason: gettext("No reading has arrived in this time."),
    name: called,
    index,
  };
}

/** A fleet too large for a line each, as it is told: its sum, or its mean between low and high. */
function groupLine(line, group) {
  const pick = (label) =>
    [...group.columns.values()].filter((column) => matches(column, line.metric, line.scope, label));
  return pick(line.group).map((column) => {
    const one = drawn(line, group, group, column, group.t);
    const near = (label) => pick(label).find((other) => other.scope === column.scope)?.v ?? null;
    const name = line.group === "sum" ? gettext("all together") : gettext("mean, between lowest and highest");
    if (line.group === "mean") Object.assign(one, { lo: near("low"), hi: near("high"), always: true });
    return { ...one, name: line.name ? `${line.name} · ${name}` : name };
  });
}

/** More lines than a reader can follow: one for each thing that is drawn (a scope, a direction). */
function fewer(lines, spec) {
  const things = new Map();
  for (const line of lines.filter((one) => one.column)) {
    things.set(line.line, [...(things.get(line.line) ?? []), line]);
  }
  const drawn = [...things.values()].map((alike) => (alike.length > 1 ? together(alike, spec) : alike[0]));
  colour(drawn);
  return drawn;
}

/** The mean of several lines, and the band they lie in. */
function together(lines, spec) {
  const step = Math.max(1, ...lines.map((line) => line.step));
  const rows = new Map();
  for (const line of lines) {
    line.t.forEach((at, index) => {
      const value = line.v[index];
      if (value === null) return;
      const place = Math.round(at / step) * step;
      const row = rows.get(place);
      if (!row) rows.set(place, [value, 1, value, value]);
      else {
        row[0] += value;
        row[1] += 1;
        if (value < row[2]) row[2] = value;
        if (value > row[3]) row[3] = value;
      }
    });
  }
  const t = parted([...rows.keys()].sort((a, b) => a - b), step);
  const same = (what) => lines.every((line) => line[what] === lines[0][what]);
  const name = interpolate(gettext("mean of %s, between lowest and highest"), [lines.length]);
  return {
    ...lines[0],
    name: lines[0].line.name ? `${lines[0].line.name} · ${name}` : name,
    source: same("source") ? lines[0].source : "",
    t,
    v: t.map((at) => (rows.has(at) ? rows.get(at)[0] / rows.get(at)[1] : null)),
    lo: t.map((at) => rows.get(at)?.[2] ?? null),
    hi: t.map((at) => rows.get(at)?.[3] ?? null),
    step,
    always: true,
    beyond: null,
    kind: same("kind") ? lines[0].kind : "derived",
    spec,
  };
}

/** With a time between those that lie too far apart to be joined. Seconds are not met exactly. */
function parted(times, step) {
  const reach = step * (step > 1.5 ? 1.5 : GAP);
  return times.flatMap((at, index) => (index && at - times[index - 1] > reach ? [times[index - 1] + step, at] : [at]));
}

/** Ranks keep their colour on the whole page; otherwise each line takes the next. */
function colour(lines) {
  const each = new Set(lines.map((line) => line.track.topic)).size === lines.length;
  const ranked = each && lines.every((line) => Number.isInteger(line.track.rank));
  lines.forEach((line, index) => {
    line.colour = ranked ? line.track.rank : index;
  });
}

/** Where `at` stands in a line's times: the nearest row, if it is near enough to speak for it. */
export function rowAt(line, at) {
  const { t } = line;
  let low = 0;
  let high = t.length - 1;
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] < at) low = middle + 1;
    else high = middle;
  }
  const nearest = low > 0 && at - t[low - 1] < t[low] - at ? low - 1 : low;
  const reach = Math.max(1.5, line.step) * (line.stepped ? 1 : 0.75);
  if (line.stepped && nearest > 0 && t[nearest] > at) return at - t[nearest - 1] <= line.step ? nearest - 1 : -1;
  return Math.abs(t[nearest] - at) <= reach ? nearest : -1;
}
