// Which time a page shows, as its address says: the last while, live, or a stretch of the past.
const KEPT = "tandem-span-seconds";
export const SPANS = { "5m": 300, "15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000, "1y": 31_536_000 };
const DEFAULT = SPANS["15m"];
const SHORTEST = 10; // seconds; a narrower zoom shows nothing more
const ZOOM = 2;

export class Range {
  constructor() {
    this.read();
  }

  read() {
    const query = new URLSearchParams(window.location.search);
    const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
    this.span = SPANS[query.get("span")] ?? kept();
    this.live = !(from > 0 && to - from >= 1);
    this.from = this.live ? null : from;
    this.to = this.live ? null : to;
  }

  /** {from, to} in Unix seconds; `now` is the panel's. */
  at(now) {
    return this.live ? { from: now - this.span, to: now } : { from: this.from, to: this.to };
  }

  follow(span = this.span) {
    this.live = true;
    this.from = this.to = null;
    this.span = span;
    localStorage.setItem(KEPT, String(span));
    this.write("replaceState");
  }

  /** A stretch of the past; nothing lies after `now`. */
  fix(from, to, now) {
    const end = Math.min(Math.max(to, from + SHORTEST), Math.max(now, from + SHORTEST));
    this.live = false;
    this.from = Math.floor(Math.min(from, end - SHORTEST));
    this.to = Math.ceil(end);
    this.write("pushState");
  }

  /** Around `centre` by a factor: below 1 closer, above 1 wider. */
  zoom(factor, centre, now) {
    const { from, to } = this.at(now);
    const middle = centre ?? (from + to) / 2;
    this.fix(middle - (middle - from) * factor, middle + (to - middle) * factor, now);
  }

  closer(centre, now) {
    this.zoom(1 / ZOOM, centre, now);
  }

  wider(centre, now) {
    this.zoom(ZOOM, centre, now);
  }

  move(share, now) {
    const { from, to } = this.at(now);
    const by = (to - from) * share;
    if (share > 0 && to + by > now) return this.fix(now - (to - from), now, now);
    return this.fix(from + by, to + by, now);
  }

  get key() {
    return this.live ? `live-${this.span}` : `${this.from}-${this.to}`;
  }

  write(how) {
    const query = new URLSearchParams(window.location.search);
    for (const name of ["span", "from", "to"]) query.delete(name);
    if (this.live) query.set("span", nameOf(this.span));
    else {
      query.set("from", String(this.from));
      query.set("to", String(this.to));
    }
    window.history[how](null, "", `${window.location.pathname}?${query}${window.location.hash}`);
  }
}

const nameOf = (span) => Object.keys(SPANS).find((name) => SPANS[name] === span) ?? "15m";

function kept() {
  const span = Number(localStorage.getItem(KEPT));
  return Object.values(SPANS).includes(span) ? span : DEFAULT;
}
