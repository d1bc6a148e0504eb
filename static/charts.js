// Live telemetry on a page: seeded from the database, then followed at 1 Hz. After a gap (socket lost,
// tab asleep, another launch) it is seeded anew, so a line never bridges what was not seen.
import { Figure, loadPlotly, readTheme, setText } from "./charts/figure.js";
import { how, number, unitName } from "./charts/format.js";
import { Store } from "./charts/store.js";
import { openSocket } from "./socket.js";

const PACE = 950; // ms between drawings
const RETRY = 4000; // ms
const QUIET = 5; // s without a frame before the page says so
const SPANS = [5, 15, 60];
const language = document.documentElement.lang;

class Panel {
  constructor(root) {
    this.root = root;
    this.scope = root.dataset.scope;
    this.id = root.dataset.id ? Number(root.dataset.id) : null;
    this.spec = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    this.store = new Store();
    this.figures = [...root.querySelectorAll("[data-chart]")].map(
      (element) => new Figure(element, this.spec.charts[element.dataset.chart]),
    );
    this.theme = readTheme();
    this.plotly = null;
    this.seeded = false;
    this.lastFrame = 0;
    this.lastDrawn = 0;
    this.pending = 0;
    this.chooseSpan(Number(localStorage.getItem("tandem-span")) || 15);
    this.listen();
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const button = event.target.closest("[data-minutes]");
      if (!button) return;
      this.chooseSpan(Number(button.dataset.minutes));
      this.seed();
    });
    document.addEventListener("themechange", () => {
      this.theme = readTheme();
      this.schedule();
    });
    document.addEventListener("visibilitychange", () => this.wake());
    const seen = new IntersectionObserver((entries) => this.onSeen(entries), { rootMargin: "120px" });
    for (const figure of this.figures) seen.observe(figure.plot.parentElement);
    this.socket = openSocket(`/ws/telemetry?lang=${encodeURIComponent(language)}`, {
      onMessage: (message) => this.onMessage(message),
      onState: (state) => this.onState(state),
    });
    window.setInterval(() => this.schedule(), 1000);
    loadPlotly(this.root.dataset.plotly).then((plotly) => {
      this.plotly = plotly;
      this.schedule();
    }, () => this.say("failed", gettext("The chart library could not be loaded.")));
  }

  chooseSpan(minutes) {
    this.span = SPANS.includes(minutes) ? minutes : 15;
    localStorage.setItem("tandem-span", String(this.span));
    for (const button of this.root.querySelectorAll("[data-minutes]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.minutes) === this.span));
    }
  }

  // --- Data -----------------------------------------------------------------------------------

  async seed() {
    window.clearTimeout(this.retry);
    this.asking?.abort();
    this.asking = new AbortController();
    const query = new URLSearchParams({ scope: this.scope, minutes: String(this.span) });
    if (this.id !== null) query.set("id", String(this.id));
    try {
      const answer = await fetch(`${this.root.dataset.seed}?${query}`, { signal: this.asking.signal });
      if (!answer.ok) throw new Error(String(answer.status));
      this.store.seed(await answer.json());
      this.seeded = true;
      this.lastDrawn = 0;
      this.schedule();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.say("failed", gettext("Telemetry could not be loaded. Trying again."));
      this.retry = window.setTimeout(() => this.seed(), RETRY);
    }
  }

  onState(state) {
    if (state === "closed") return this.say("lost", gettext("Connection lost"));
    this.socket.send({ subscribe: { scope: this.scope, id: this.id } });
    return this.seed();
  }

  onMessage(message) {
    if (message.changed) this.seed();
    if (!message.frames || !this.seeded) return;
    this.lastFrame = Date.now() / 1000;
    const known = message.frames.map((frame) => this.store.push(frame));
    if (known.includes(false)) this.seed();
    this.schedule();
  }

  /** Back from the background: what was missed while the browser slept is read again. */
  wake() {
    if (document.hidden) return;
    if (Date.now() / 1000 - this.lastFrame > 3) this.seed();
    else this.schedule();
  }

  // --- Drawing --------------------------------------------------------------------------------

  onSeen(entries) {
    for (const entry of entries) {
      const figure = this.figures.find((f) => f.plot.parentElement === entry.target);
      figure.visible = entry.isIntersecting;
    }
    this.lastDrawn = 0;
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
    this.store.trim(this.store.now() - this.span * 60);
    this.spec.tiles.forEach((tile, index) => this.drawTile(tile, index));
    for (const figure of this.figures) {
      if (this.plotly) figure.draw(this.plotly, this.store, this.span, this.theme);
      else figure.update(this.store);
    }
    this.drawLive();
    const quiet = Date.now() / 1000 - this.lastFrame > QUIET;
    if (document.body.dataset.link !== "closed") {
      if (quiet) this.say("quiet", gettext("No new readings"));
      else this.say("live", gettext("Live"));
    }
  }

  drawTile(tile, index) {
    const element = this.root.querySelector(`[data-tile="${index}"]`);
    const all = this.store.ofRole(tile.role).map((track) => this.store.latest(track, tile.metric));
    const known = all.filter((latest) => latest.value !== null);
    const values = known.map((latest) => latest.value * tile.factor);
    const value = !values.length
      ? null
      : tile.combine === "sum" ? values.reduce((a, b) => a + b) : Math.max(...values);
    element.classList.toggle("is-absent", value === null);
    setText(element.querySelector("[data-value]"), number(value, tile.unit));
    setText(element.querySelector("[data-unit]"), value === null ? "" : unitName(tile.unit));
    const reason = all.find((latest) => latest.reason)?.reason ?? gettext("Nothing runs here.");
    setText(
      element.querySelector("[data-note]"),
      value === null ? reason : how(known[0].kind, known[0].source),
    );
  }

  /** Small live values elsewhere on the page: `data-live="tokens_per_second" data-launch="…"`. */
  drawLive() {
    for (const element of document.querySelectorAll("[data-live='tokens_per_second']")) {
      const track = this.store.topics.get(`launch:${element.dataset.launch}`);
      const latest = track && this.store.latest(track, "generation_tokens_per_second");
      const known = latest && latest.value !== null;
      setText(element, known ? `${number(latest.value, "tokens/s")} ${unitName("tokens/s")}` : "");
    }
  }

  say(state, text) {
    const element = this.root.querySelector("[data-state]");
    element.dataset.state = state;
    setText(element.querySelector("[data-state-text]"), text);
  }
}

for (const root of document.querySelectorAll("[data-telemetry]")) new Panel(root);
