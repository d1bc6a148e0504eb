// What the page knows: for each topic one time column and a column a series. Times are Unix seconds on
// the panel's clock. What is newest is kept beside the columns, since a page that shows last week still
// says what is now.

export const GAP = 2.5; // steps; rows further apart are not joined by a line
const FINE = 1000; // rows of a span; live readings are folded into as many
const MOST_LAYOUTS = 2000;
const TOGETHER = 0.4; // seconds; what comes closer than this is one row, from several sources
const STALE = 5; // seconds; an older value is no statement about now

export class Store {
  constructor() {
    this.topics = new Map();
    this.newest = new Map(); // topic -> key -> the newest value, with its moment
    this.layouts = new Map();
    this.offset = 0; // server clock minus ours, seconds
    this.derived = new Map();
  }

  now() {
    return Date.now() / 1000 + this.offset;
  }

  seed(payload) {
    this.setClock(payload.now);
    this.topics = new Map(payload.subjects.map((s) => [s.topic, new Track(s, payload)]));
    for (const track of this.topics.values()) this.takeNewest(track, payload);
    for (const topic of this.newest.keys()) if (!this.topics.has(topic)) this.newest.delete(topic);
  }

  /** Series with a time column of their own, such as percentiles a minute. */
  seedDerived(payload) {
    this.derived = new Map(payload.subjects.map((s) => [s.topic, new Track(s, payload)]));
  }

  takeNewest(track, payload) {
    const at = track.t.at(-1);
    if (at === undefined || payload.step > 1.5) return;
    const values = this.valuesOf(track.topic);
    for (const column of track.columns.values()) {
      if ((values.get(column.key)?.at ?? 0) >= at) continue;
      values.set(column.key, { ...describe(column), value: column.v.at(-1) ?? null, rate: null, at });
    }
  }

  valuesOf(topic) {
    if (!this.newest.has(topic)) this.newest.set(topic, new Map());
    return this.newest.get(topic);
  }

  setClock(now) {
    this.offset = now - Date.now() / 1000;
  }

  /** What later frames of this connection mean. */
  learn(layouts) {
    for (const layout of layouts) this.layouts.set(layout.n, layout);
    for (const n of this.layouts.keys()) {
      if (this.layouts.size <= MOST_LAYOUTS) break;
      this.layouts.delete(n); // the oldest; a number is never used twice
    }
  }

  /** False when the frame belongs to something that was not seeded. `keep`: extend the columns too. */
  push([n, at, numbers], keep) {
    const layout = this.layouts.get(n);
    if (!layout) return true;
    this.remember(layout, at, numbers);
    const track = this.topics.get(layout.topic);
    if (!track) return false;
    if (keep) track.push(at, layout.series, numbers);
    return true;
  }

  /** Several sources may speak of one subject, each with its own layout. */
  remember(layout, at, numbers) {
    const values = this.valuesOf(layout.topic);
    layout.series.forEach((series, index) => {
      const value = numbers[index] ?? null;
      const last = values.get(series.key);
      if (last && last.at >= at) return;
      values.set(series.key, { ...describe(series), value, at, rate: rateBetween(last, value, at) });
    });
  }

  trim(before) {
    for (const track of this.topics.values()) track.trim(before);
  }

  ofRole(role) {
    return [...this.topics.values()].filter((track) => track.role === role);
  }

  /** The newest values of a topic that match; value is null where reason says why. */
  latest(topic, { metric, scope = "", label = null }) {
    const now = this.now();
    const found = [...(this.newest.get(topic)?.values() ?? [])].filter((one) => matches(one, metric, scope, label));
    const fresh = found.filter((one) => now - one.at <= STALE);
    if (fresh.length) return fresh;
    const reason = gettext("No reading has arrived for some seconds.");
    return found.map((one) => ({ ...one, value: null, rate: null, reason }));
  }
}

export function matches(series, metric, scope, label) {
  return (
    series.metric === metric && (!scope || series.scope === scope) && (label === null || series.label === label)
  );
}

function describe({ key, metric, scope, label, unit, kind, source, reason }) {
  return { key, metric, scope, label, unit, kind, source, reason };
}

function rateBetween(last, value, at) {
  if (!last || last.value === null || value === null || value < last.value || at - last.at > 10) return null;
  return (value - last.value) / (at - last.at);
}

class Track {
  constructor(subject, { from, to, step, now }) {
    this.topic = subject.topic;
    this.label = subject.label;
    this.role = subject.role;
    this.rank = subject.rank ?? null; // the number whose colour it has on the whole page
    this.node = subject.node;
    this.step = Math.max(1, step || 1);
    // The past may be told by the minute where the present comes by the second.
    this.fine = Math.min(this.step, Math.max(1, (to - from) / FINE));
    this.usual = this.step;
    this.t = subject.t.map((offset) => from + offset);
    this.columns = new Map(
      subject.series.map((series) => [
        series.key,
        { ...describe(series), v: series.v, lo: series.lo ?? null, hi: series.hi ?? null },
      ]),
    );
    // How many readings the last row stands for, so that the next is given its due weight.
    this.folded = Math.max(1, Math.min(this.step, Math.round(now - (this.t.at(-1) ?? now))));
  }

  push(at, series, numbers) {
    const last = this.t.at(-1);
    const passed = last === undefined ? Infinity : at - last;
    if (!series.length || passed < -TOGETHER) return undefined;
    for (const one of series) this.prepare(one);
    if (passed < TOGETHER) return this.write(series, numbers, (old, number) => old ?? number);
    if (this.fine > 1.5 && passed < this.fine) return this.fold(series, numbers);
    const gap = passed !== Infinity && passed > GAP * this.usual;
    if (gap) this.append(last + this.usual, [], []);
    const row = this.fine > 1.5 && !gap && passed !== Infinity ? last + this.fine * Math.floor(passed / this.fine) : at;
    this.usual = this.fine;
    return this.append(row, series, numbers);
  }

  prepare(one) {
    const column = this.columns.get(one.key);
    if (!column) {
      const empty = () => new Array(this.t.length).fill(null);
      const wide = this.step > 1.5;
      this.columns.set(one.key, { ...describe(one), v: empty(), lo: wide ? empty() : null, hi: wide ? empty() : null });
    } else if (column.kind !== one.kind || column.reason !== one.reason || column.source !== one.source) {
      Object.assign(column, describe(one));
    }
  }

  append(at, series, numbers) {
    this.t.push(at);
    this.folded = 1;
    for (const column of this.columns.values()) {
      column.v.push(null);
      column.lo?.push(null);
      column.hi?.push(null);
    }
    this.write(series, numbers, (_old, number) => number);
  }

  /** One more reading for the last row: the mean moves, the extremes widen. */
  fold(series, numbers) {
    const weight = this.folded;
    this.folded += 1;
    this.write(series, numbers, (old, number) => (old === null ? number : (old * weight + number) / (weight + 1)));
  }

  write(series, numbers, mean) {
    const end = this.t.length - 1;
    series.forEach((one, index) => {
      const number = numbers[index];
      if (number === null || number === undefined) return;
      const column = this.columns.get(one.key);
      column.v[end] = mean(column.v[end], number);
      if (column.lo) column.lo[end] = column.lo[end] === null ? number : Math.min(column.lo[end], number);
      if (column.hi) column.hi[end] = column.hi[end] === null ? number : Math.max(column.hi[end], number);
    });
  }

  trim(before) {
    let gone = 0;
    while (gone < this.t.length && this.t[gone] < before) gone += 1;
    if (gone < 30) return; // in strides: cutting an array's head costs its length
    this.t.splice(0, gone);
    for (const column of this.columns.values()) {
      for (const values of [column.v, column.lo, column.hi]) values?.splice(0, gone);
    }
  }
}
