// What happened while the lines were drawn: jobs, alerts, events and requests, on a lane above the charts
// and as thin lines in them.
import { fillList, make, setText } from "./dom.js";
import { momentText } from "./format.js";

const KEPT = "tandem-markers";
const MOST_SHAPES = 40; // in one chart; the lane has them all
const KINDS = {
  job: () => gettext("Job"),
  alert: () => gettext("Alert"),
  event: () => gettext("Event"),
  request: () => gettext("Request"),
};

export class Markers {
  constructor(root) {
    this.lane = root.querySelector("[data-lane]");
    this.button = root.querySelector("[data-markers-toggle]");
    this.all = [];
    this.shown = localStorage.getItem(KEPT) !== "off";
    this.mark();
  }

  toggle() {
    this.shown = !this.shown;
    localStorage.setItem(KEPT, this.shown ? "on" : "off");
    this.mark();
  }

  mark() {
    this.button.setAttribute("aria-pressed", String(this.shown));
    this.lane.hidden = !this.shown;
  }

  take(markers) {
    this.all = markers;
  }

  /** For the charts: jobs, alerts and what went wrong, the gravest first; the lane has the rest. */
  shapes() {
    if (!this.shown) return [];
    const weight = { error: 0, warning: 1 };
    const drawn = this.all.filter(({ kind, level }) => kind === "job" || kind === "alert" || level in weight);
    return drawn.sort((a, b) => (weight[a.level] ?? 2) - (weight[b.level] ?? 2)).slice(0, MOST_SHAPES);
  }

  draw({ from, to }) {
    if (!this.shown) return;
    const within = this.all.filter((marker) => marker.at <= to && (marker.until ?? marker.at) >= from);
    fillList(this.lane.querySelector("ol"), within, () => {
      const item = make("li");
      item.append(make("a", "marker"));
      return item;
    }, (item, marker) => this.fill(item, marker, from, to));
    setText(
      this.lane.querySelector("[data-lane-empty]"),
      within.length ? "" : gettext("Nothing was recorded in this time."),
    );
  }

  fill(item, marker, from, to) {
    const link = item.firstElementChild;
    const share = (at) => Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100));
    const start = share(marker.at);
    const end = marker.until ? share(marker.until) : start;
    const text = `${KINDS[marker.kind]?.() ?? marker.kind}: ${marker.text}\n${momentText(marker.at)}`;
    item.style.setProperty("--at", `${start}%`);
    item.style.setProperty("--long", `${end - start}%`);
    link.className = `marker marker-${marker.kind} marker-${marker.level}`;
    link.title = text;
    link.setAttribute("aria-label", text);
    if (marker.url) link.href = marker.url;
    else link.removeAttribute("href");
  }
}
