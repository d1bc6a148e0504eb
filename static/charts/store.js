// What the page knows: for each topic one time column and a column a metric. Times are Unix seconds.

const GAP = 2.5; // seconds; readings further apart are not joined by a line
const STALE = 5; // seconds; an older value is no statement about now

export class Store {
  constructor() {
    this.topics = new Map();
    this.offset = 0; // server clock minus ours, seconds
  }

  now() {
    return Date.now() / 1000 + this.offset;
  }

  seed(payload) {
    this.offset = payload.now - Date.now() / 1000;
    this.topics = new Map(payload.subjects.map((s) => [s.topic, new Track(s, payload.from)]));
  }

  /** False when the frame belongs to something that was not seeded. */
  push(frame) {
    const track = this.topics.get(frame.topic);
    if (!track) return false;
    track.push(frame);
    return true;
  }

  trim(before) {
    for (const track of this.topics.values()) track.trim(before);
  }

  ofRole(role) {
    return [...this.topics.values()].filter((track) => track.role === role);
  }

  /** {value, reason, kind, source}: value is null where reason says why. */
  latest(track, metric) {
    const info = track.info[metric];
    if (!info) return { value: null, reason: gettext("No reading has arrived yet."), missing: true };
    const age = this.now() - (track.t.at(-1) ?? 0);
    if (age > STALE) {
      return { ...info, value: null, reason: gettext("No reading has arrived for some seconds.") };
    }
    return { ...info, value: track.columns[metric].at(-1) ?? null };
  }
}

class Track {
  constructor(subject, origin) {
    this.topic = subject.topic;
    this.label = subject.label;
    this.role = subject.role;
    this.rank = subject.rank; // null, or the number whose colour it has on the whole page
    this.t = subject.t.map((offset) => origin + offset);
    this.columns = {};
    this.info = {};
    for (const [metric, series] of Object.entries(subject.metrics)) {
      this.columns[metric] = series.v;
      this.info[metric] = { kind: series.kind, source: series.source, reason: series.reason };
    }
  }

  push(frame) {
    const last = this.t.at(-1);
    if (last !== undefined && frame.at <= last + 0.01) return;
    if (last !== undefined && frame.at - last > GAP) this.append(last + 1, {});
    for (const [metric, [kind, source]] of Object.entries(frame.how)) {
      this.columns[metric] ??= new Array(this.t.length).fill(null);
      this.info[metric] = { kind, source, reason: frame.absent[metric] ?? "" };
    }
    this.append(frame.at, frame.values);
  }

  append(at, values) {
    this.t.push(at);
    for (const [metric, column] of Object.entries(this.columns)) column.push(values[metric] ?? null);
  }

  trim(before) {
    let gone = 0;
    while (gone < this.t.length && this.t[gone] < before) gone += 1;
    if (gone < 30) return; // in strides: cutting an array's head costs its length
    this.t.splice(0, gone);
    for (const column of Object.values(this.columns)) column.splice(0, gone);
  }
}
