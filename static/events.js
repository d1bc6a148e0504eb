// Live pages. The server says *that* something changed; the page fetches itself again and swaps the
// regions it named in hx-select-oob, so every word still comes translated from the server.
import { openSocket } from "./socket.js";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const language = document.documentElement.lang;
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
const absolute = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });

// --- Tabs -----------------------------------------------------------------------------------------

// On a phone the one that is open may lie beyond the edge.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// --- Times that move ----------------------------------------------------------------------------

function ago(seconds) {
  if (seconds < 5) return gettext("just now");
  if (seconds < MINUTE) return relative.format(-Math.floor(seconds), "second");
  if (seconds < HOUR) return relative.format(-Math.floor(seconds / MINUTE), "minute");
  if (seconds < DAY) return relative.format(-Math.floor(seconds / HOUR), "hour");
  return relative.format(-Math.floor(seconds / DAY), "day");
}

function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return interpolate(gettext("%s s"), [whole]);
  if (whole < HOUR) {
    return interpolate(gettext("%s min %s s"), [Math.floor(whole / MINUTE), whole % MINUTE]);
  }
  return interpolate(gettext("%s h %s min"), [
    Math.floor(whole / HOUR),
    Math.floor((whole % HOUR) / MINUTE),
  ]);
}

// The text lives in a shadow root: the markup stays as the server sent it and compares equal.
class LiveTime extends HTMLElement {
  connectedCallback() {
    this.at = Date.parse(this.getAttribute("datetime")) / 1000;
    this.title = absolute.format(this.at * 1000);
    if (!this.shadowRoot) this.attachShadow({ mode: "open" });
    this.draw();
    this.timer = window.setInterval(() => this.draw(), 1000);
  }

  disconnectedCallback() {
    window.clearInterval(this.timer);
  }

  draw() {
    const passed = Date.now() / 1000 - this.at;
    const text = {
      ago: () => ago(passed),
      elapsed: () => span(passed),
      left: () => span(-passed),
      clock: () => absolute.format(this.at * 1000),
    }[this.getAttribute("mode")]();
    if (this.shadowRoot.textContent !== text) this.shadowRoot.textContent = text;
  }
}

customElements.define("live-time", LiveTime);

// --- What changed on the fleet ------------------------------------------------------------------

const announced = new Set();

// Bursts (a deploy touches many rows) become one re-fetch.
function announce(name) {
  if (announced.has(name)) return;
  announced.add(name);
  window.setTimeout(() => {
    announced.delete(name);
    document.body.dispatchEvent(new CustomEvent(name));
  }, 250);
}

function onMessage(message) {
  if (message.kind === "log") {
    document.body.dispatchEvent(new CustomEvent("log", { detail: message }));
    return;
  }
  announce("fleet");
  announce(`${message.kind}-${message.id}`);
}

const UNDER_WAY = ["queued", "running", "pending", "starting", "loading", "draining", "stopping", "recovering", "restarting"]
  .map((status) => `[data-status="${status}"]`)
  .join();

if ("signedIn" in document.body.dataset) {
  const socket = openSocket("/ws/events", { onMessage, onState });

  function onState(state) {
    const back = document.body.dataset.link === "closed" && state === "open";
    const first = document.body.dataset.link !== "open" && state === "open" && !back;
    document.body.dataset.link = state;
    const { deployment } = document.body.dataset;
    if (state === "open" && deployment) socket.send({ watch: { deployment: Number(deployment) } });
    // Whatever was missed meanwhile; also between the page and its socket, on the way to somewhere.
    if (back || (first && document.querySelector(UNDER_WAY))) announce("fleet");
  }
}

// --- The live log of a deployment ----------------------------------------------------------------

const LOG_LINES = 1000;
const log = document.getElementById("log");

// The reader's own clock; the server only knows UTC.
const clock = (at) => at.toLocaleTimeString([], { hourCycle: "h23" });

function appendLog(source, text) {
  const line = document.createElement("div");
  line.className = "log-line";
  const time = document.createElement("time");
  time.textContent = clock(new Date());
  const name = document.createElement("b");
  name.textContent = source;
  const words = document.createElement("span");
  words.textContent = text;
  line.append(time, name, words);
  log.append(line);
}

if (log) {
  for (const time of log.querySelectorAll("time")) time.textContent = clock(new Date(time.dateTime));
  log.scrollTop = log.scrollHeight;
  document.body.addEventListener("log", ({ detail }) => {
    const following = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    for (const text of detail.lines) appendLog(detail.source, text);
    while (log.childElementCount > LOG_LINES) log.firstElementChild.remove();
    if (following) log.scrollTop = log.scrollHeight;
  });
}

// --- Swaps: leave alone what did not change ------------------------------------------------------

// htmx leaves empty class attributes behind, and every page carries a fresh CSRF token.
const comparable = (element) =>
  element.outerHTML.replace(/ class=""/g, "").replace(/(csrfmiddlewaretoken" value=")[^"]*/g, "$1");

document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const incoming = fragment?.firstElementChild;
  // Nobody loses the dialog that they are in, nor what they have unfolded to read.
  if (target.querySelector("dialog[open]")) event.detail.shouldSwap = false;
  for (const known of incoming ? target.querySelectorAll("details[id]") : []) {
    const next = incoming.querySelector(`#${CSS.escape(known.id)}`);
    if (next && known.open) next.open = true;
  }
  if (incoming && comparable(incoming) === comparable(target)) event.detail.shouldSwap = false;
});

// --- Menus, dialogs, copying ---------------------------------------------------------------------

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.removeAttribute("open");
  }
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
  if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
  if (event.target instanceof HTMLDialogElement) event.target.close(); // the backdrop
  const copier = event.target.closest("[data-copy]");
  if (copier) copy(copier);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  menu?.removeAttribute("open");
  menu?.querySelector("summary").focus();
});

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  const label = button.querySelector("[data-copy-label]");
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(text);
    label.textContent = gettext("Copied");
  } catch {
    // Browsers offer the clipboard to secure pages only; over plain HTTP, select it instead.
    window.getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    label.textContent = gettext("Selected: press Ctrl+C");
  }
  window.setTimeout(() => (label.textContent = before), 2500);
}

for (const dialog of document.querySelectorAll("dialog[data-open]")) dialog.showModal();
