// A page's telemetry: seeded from the database, then followed at 1 Hz. After a gap (socket lost, tab
// asleep, another launch) it is seeded anew, so a line never bridges what was not seen.
import { openSocket } from "../socket.js";
import { setText } from "./dom.js";
import { Figure } from "./figure.js";
import { momentText } from "./format.js";
import { Markers } from "./markers.js";
import { loadPlotly, readTheme } from "./plotly.js";
import { Range } from "./range.js";
import { Store } from "./store.js";
import { Toolbar } from "./toolbar.js";
import { drawSpeeds, drawTile, drawValues } from "./values.js";

const PACE = 950; // ms between drawings
const RETRY = 4000; // ms
const QUIET = 5; // s without a frame before the page says so
const DERIVED_EVERY = 20_000; // ms; percentiles are told by the minute
const MOST_POINTS = 1000;
const language = document.documentElement.lang;

export class Panel {
  constructor(root) {
    this.root = root;
    this.scope = root.dataset.scope;
    this.id = root.dataset.id ? Number(root.dataset.id) : null;
    this.spec = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    this.store = new Store();
    this.range = new Range();
    this.markers = new Markers(root);
    this.figures = [...root.querySelectorAll("[data-chart]")].map(
      (element) => new Figure(element, this.spec.charts[element.dataset.chart]),
    );
    this.toolbar = new Toolbar(root, this.range, {
      onSpan: (span) => this.follow(span),
      onLive: () => this.follow(),
      onRange: (from, to) => this.fix(from, to),
    });
    this.theme = readTheme();
    this.plotly = null;
    this.seeded = false;
    this.lastFrame = 0;
    this.lastDrawn = 0;
    this.pending = 0;
    this.at = null; // the moment under the cursor
    this.held = false; // a box is being drawn: the chart must not move under it
    this.listen();
  }

  // --- What the reader does -------------------------------------------------------------------

  listen() {
    document.addEventListener("themechange", () => {
      this.theme = readTheme();
      this.redraw();
    });
    document.addEventListener("visibilitychange", () => this.wake());
    window.addEventListener("popstate", () => {
      this.range.read();
      this.seed();
    });
    this.root.querySelector("[data-markers-toggle]").addEventListener("click", () => {
      this.markers.toggle();
      this.redraw();
    });
    this.root.addEventListener("zoomed", ({ detail }) => this.fix(detail.from, detail.to));
    this.listenToCharts();
    document.body.addEventListener("fleet", () => this.seedMarkers().then(() => this.redraw(), () => {}));
    const seen = new IntersectionObserver((entries) => this.onSeen(entries), { rootMargin: "160px" });
    for (const figure of this.figures) seen.observe(figure.box);
    this.socket = openSocket(`/ws/telemetry?lang=${encodeURIComponent(language)}`, {
      onMessage: (message) => this.onMessage(message),
      onState: (state) => this.onState(state),
    });
    window.setInterval(() => this.schedule(), 1000);
    window.setInterval(() => {
      if (this.seeded && this.range.live) this.refresh();
    }, DERIVED_EVERY);
    loadPlotly(this.root.dataset.plotly).then((plotly) => {
      this.plotly = plotly;
      this.redraw();
    }, () => this.say("failed", gettext("The chart library could not be loaded.")));
  }

  listenToCharts() {
    for (const figure of this.figures) {
      figure.box.addEventListener("pointermove", (event) => this.point(figure.momentAt(event.clientX)));
      figure.box.addEventListener("pointerleave", () => this.point(null));
      figure.box.addEventListener("pointerdown", () => (this.held = true));
      figure.box.addEventListener("dblclick", () => this.follow());
      figure.root.addEventListener("keydown", (event) => this.onKey(event, figure));
      figure.root.addEventListener("blur", () => this.point(null));
    }
    for (const end of ["pointerup", "pointercancel"]) {
      window.addEventListener(end, () => (this.held = false));
    }
  }

  /** One cursor for the whole page; drawn once a frame however fast the pointer moves. */
  point(at) {
    if (this.at === at) return;
    this.at = at;
    this.pointing ??= requestAnimationFrame(() => {
      this.pointing = null;
      for (const figure of this.figures) {
        figure.place(this.at);
        if (figure.visible) figure.tell(this.at, this.store.now());
      }
    });
  }

  onKey(event, figure) {
    const now = this.store.now();
    const { from, to } = this.range.at(now);
    const step = (to - from) / 60;
    const move = { ArrowLeft: -step, ArrowRight: step }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (move && event.shiftKey) this.change(() => this.range.move(Math.sign(move) / 2, now));
    else if (move) this.point(Math.min(to, Math.max(from, (this.at ?? to) + move)));
    else if (event.key === "+" || event.key === "=") this.change(() => this.range.closer(this.at, now));
    else if (event.key === "-") this.change(() => this.range.wider(this.at, now));
    else if (event.key === "Escape" || event.key === "Home") this.follow();
    else return;
    figure.describe(this.at === null ? "" : momentText(this.at));
    event.preventDefault();
  }

  follow(span) {
    this.change(() => this.range.follow(span));
  }

  fix(from, to) {
    this.change(() => this.range.fix(from, to, this.store.now()));
  }

  change(act) {
    act();
    this.at = null;
    this.seed();
  }

  // --- Data -----------------------------------------------------------------------------------

  query(extra = {}) {
    const query = new URLSearchParams({ scope: this.scope });
    if (this.id !== null) query.set("id", String(this.id));
    if (this.range.live) query.set("minutes", String(this.range.span / 60));
    else {
      query.set("from", String(this.range.from));
      query.set("to", String(this.range.to));
    }
    for (const [name, value] of Object.entries(extra)) query.set(name, value);
    return query;
  }

  points() {
    if (this.range.live && this.range.span <= MOST_POINTS) return MOST_POINTS;
    const width = Math.max(...this.figures.map((figure) => figure.box.clientWidth), 300);
    return Math.min(MOST_POINTS, Math.round(width));
  }

  async seed() {
    window.clearTimeout(this.retry);
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.toolbar.show(this.store.now(), this.query());
    this.refresh(); // What takes longer does not keep the rest waiting.
    try {
      const query = this.query({ points: this.points() });
      this.store.seed(await this.ask(this.root.dataset.series, query, signal));
      this.seeded = true;
      this.redraw();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.say("failed", gettext("Telemetry could not be loaded. Trying again."));
      this.retry = window.setTimeout(() => this.seed(), RETRY);
    }
  }

  async ask(url, query, signal) {
    const answer = await fetch(`${url}?${query}`, { signal });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  async seedDerived(signal) {
    if (!this.spec.derived.length) return;
    const query = this.query({ metrics: this.spec.derived.join(","), points: 240 });
    this.store.seedDerived(await this.ask(this.root.dataset.series, query, signal));
  }

  async seedMarkers(signal) {
    const { from, to } = this.range.at(this.store.now());
    const query = new URLSearchParams({ scope: this.scope, from: Math.floor(from), to: Math.ceil(to) });
    if (this.id !== null) query.set("id", String(this.id));
    this.markers.take((await this.ask(this.root.dataset.markers, query, signal)).markers);
  }

  /** What does not come with the frames: lines without it are worth more than neither, and where it
   * fails, the next time tries again. */
  refresh() {
    if (document.hidden) return;
    const { signal } = this.asking;
    for (const part of [this.seedDerived(signal), this.seedMarkers(signal)]) {
      part.then(() => this.redraw(), () => {});
    }
  }

  onState(state) {
    if (state === "closed") return this.say("lost", gettext("Connection lost"));
    this.store.layouts.clear();
    this.socket.send({ subscribe: { scope: this.scope, id: this.id }, grid: this.gridMetric ?? null });
    if (document.hidden) this.socket.send({ pause: true });
    return this.seed();
  }

  /** The heat grid of a large fleet; `onGrid` draws what comes. */
  followGrid(metric, onGrid) {
    this.gridMetric = metric;
    this.onGrid = onGrid;
    this.socket.send({ subscribe: { scope: this.scope, id: this.id }, grid: metric });
  }

  onMessage(message) {
    if (message.layouts) this.store.learn(message.layouts);
    if (message.grid) this.onGrid?.(message.grid);
    if (message.changed) this.seed();
    if (!message.frames) return;
    this.lastFrame = Date.now() / 1000;
    if (message.now) this.store.setClock(message.now);
    if (!this.seeded) return;
    const known = message.frames.map((frame) => this.store.push(frame, this.range.live));
    if (known.includes(false)) this.reseedSoon();
    this.schedule();
  }

  /** Frames of what was not seeded come every second; one look at the database is enough. */
  reseedSoon() {
    if (this.reseeding) return;
    this.reseeding = window.setTimeout(() => {
      this.reseeding = 0;
      this.seed();
    }, RETRY / 2);
  }

  /** A hidden page asks for nothing; back from there, what was missed is read again. */
  wake() {
    this.socket.send({ pause: document.hidden });
    if (document.hidden) return;
    if (Date.now() / 1000 - this.lastFrame > 3) this.seed();
    else this.redraw();
  }

  // --- Drawing --------------------------------------------------------------------------------

  onSeen(entries) {
    for (const entry of entries) {
      const figure = this.figures.find((each) => each.box === entry.target);
      figure.visible = entry.isIntersecting;
    }
    this.redraw();
  }

  redraw() {
    this.lastDrawn = 0;
    this.fresh = true;
    this.schedule();
  }

  schedule() {
    if (this.pending || document.hidden || !this.seeded) return;
    const wait = Math.max(0, PACE - (performance.now() - this.lastDrawn));
    this.pending = window.setTimeout(() => {
      requestAnimationFrame(() => {
        this.pending = 0;
        this.lastDrawn = performance.now();
        this.draw();
      });
    }, wait);
  }

  draw() {
    const now = this.store.now();
    const span = this.range.at(now);
    if (this.range.live) this.store.trim(span.from);
    this.spec.tiles.forEach((tile, index) => {
      drawTile(this.root.querySelector(`[data-tile="${index}"]`), tile, this.store);
    });
    drawSpeeds(this.store);
    drawValues(document, this.store);
    this.toolbar.show(now, this.query());
    this.markers.draw(span);
    this.drawState();
    if (this.drawing) return this.schedule(); // A slow machine finishes one round before the next.
    if (this.held || !(this.range.live || this.fresh)) return;
    this.fresh = false;
    this.drawFigures(span);
  }

  /** One chart a task: with many of them, a click in between is still answered at once. */
  drawFigures(span) {
    const markers = this.markers.shapes();
    const waiting = [...this.figures];
    const next = () => {
      const figure = waiting.shift();
      this.drawing = Boolean(figure);
      if (!figure) return;
      const given = { span, theme: this.theme, at: this.at, markers, key: this.range.key };
      let drawn = false;
      if (this.plotly) drawn = figure.draw(this.plotly, this.store, given);
      else figure.update(this.store, span, this.at);
      if (drawn) window.setTimeout(next, 0);
      else next();
    };
    next();
  }

  drawState() {
    if (document.body.dataset.link === "closed") return;
    const quiet = Date.now() / 1000 - this.lastFrame > QUIET;
    if (!this.range.live) this.say("past", gettext("Not live"));
    else if (quiet) this.say("quiet", gettext("No new readings"));
    else this.say("live", gettext("Live"));
  }

  say(state, text) {
    const element = this.root.querySelector("[data-state]");
    element.dataset.state = state;
    setText(element.querySelector("[data-state-text]"), text);
  }
}
