// What is now, in words: the tiles of a panel, and small values anywhere on the page.
import { setAttribute, setText } from "./dom.js";
import { ABSENT, how, short, told, words } from "./format.js";

const WIDEST = ["wall", "host", "cpu", "accelerator"];

/** Several newest values as one: their sum, the greatest, or the sum in the widest scope that is known. */
function combined(found, combine) {
  let known = found.filter((one) => one.value !== null);
  if (!known.length) return null;
  if (combine === "widest") {
    const scope = WIDEST.find((name) => known.some((one) => one.scope === name)) ?? known[0].scope;
    known = known.filter((one) => one.scope === scope);
    return { ...combined(known, "sum"), scope };
  }
  const value = combine === "sum" ? known.reduce((sum, one) => sum + one.value, 0) : Math.max(...known.map((one) => one.value));
  return { value, kind: known[0].kind, source: known[0].source };
}

export function drawTile(element, tile, store) {
  const tracks = tile.roles.flatMap((role) => store.ofRole(role));
  const group = tile.roles.map((role) => store.topics.get(`group:${role}`)).find(Boolean);
  const topics = group ? [group.topic] : tracks.map((track) => track.topic);
  const label = group ? (tile.combine === "sum" ? "sum" : "high") : tile.seriesLabel || null;
  const all = topics.flatMap((topic) => store.latest(topic, { metric: tile.metric, scope: tile.scope, label }));
  const one = combined(all, tile.combine);
  const said = words(one ? one.value : null, tile.unit);
  element.classList.toggle("is-absent", !one);
  setText(element.querySelector("[data-value]"), one?.kind === "estimated" ? `≈ ${said.number}` : said.number);
  setText(element.querySelector("[data-unit]"), said.unit === tile.unit && tile.unit === "requests" ? "" : said.unit);
  const reason = all.find((each) => each.reason)?.reason ?? gettext("Nothing runs here.");
  setText(element.querySelector("[data-note]"), one ? how(one.kind, one.source) : reason);
}

/**
 * `<… data-now="metric" data-topic="3/node" data-unit="watts">` with optional `data-scope`, `data-label`
 * (else any), `data-combine` (sum, max, each) and `data-rate`; inside it `data-said`, perhaps `data-note`,
 * and a meter that shares its scale with all of the same `data-axis`.
 */
export function drawValues(root, store) {
  const meters = [];
  for (const element of root.querySelectorAll("[data-now]")) {
    const one = valueOf(element.dataset, store);
    const said = element.querySelector("[data-said]") ?? element;
    setText(said, one.text);
    element.classList.toggle("absent", one.value === null);
    setAttribute(element, "title", one.why);
    const note = element.querySelector("[data-note]");
    if (note) setText(note, one.why);
    const meter = element.querySelector(".meter");
    if (meter) meters.push([element.dataset, meter, one]);
  }
  scaleMeters(meters);
}

function valueOf(data, store) {
  const { now: metric, topic, unit, scope = "", label = null, rate, combine = "max" } = data;
  const found = store.latest(topic, { metric, scope, label: label === "" ? null : label });
  const values = found.map((one) => (rate === undefined ? one : { ...one, value: one.rate }));
  const one = combined(values, combine);
  if (!one) {
    const why = found.find((each) => each.reason)?.reason ?? gettext("No reading has arrived yet.");
    return { value: null, text: ABSENT, why };
  }
  const why = one.scope ? `${SCOPES[one.scope]?.() ?? one.scope} · ${how(one.kind, one.source)}` : how(one.kind, one.source);
  return { value: one.value, kind: one.kind, text: told(one.value, unit, one) + bandOf(data, store), why };
}

const SCOPES = {
  wall: () => gettext("wall"),
  host: () => gettext("host"),
  cpu: () => gettext("CPU"),
  accelerator: () => gettext("accelerator"),
};

/** " ± 3" where half the width is told with it. */
function bandOf({ band, topic }, store) {
  const [width] = band ? store.latest(topic, { metric: band }) : [];
  return width && width.value !== null ? ` ± ${short(width.value)}` : "";
}

/** Meters of one axis are as long as their values are great, so that boxes can be compared. */
function scaleMeters(meters) {
  const tops = new Map();
  for (const [data, , one] of meters) {
    const top = data.top ? Number(data.top) : (one.value ?? 0);
    tops.set(data.axis, Math.max(tops.get(data.axis) ?? 0, top));
  }
  for (const [data, meter, one] of meters) {
    const top = tops.get(data.axis);
    meter.classList.toggle("is-absent", one.value === null);
    meter.classList.toggle("is-estimated", one.kind === "estimated");
    meter.style.setProperty("--fill", one.value === null || !top ? "0" : String(Math.min(1, Math.max(0, one.value / top))));
  }
}

/** Speeds beside deployments: `data-live="tokens_per_second" data-launch="…"`. */
export function drawSpeeds(store) {
  for (const element of document.querySelectorAll("[data-live='tokens_per_second']")) {
    const [latest] = store.latest(`launch:${element.dataset.launch}`, { metric: "generation_tokens_per_second" });
    setText(element, latest && latest.value !== null ? told(latest.value, "tokens/s", latest) : "");
  }
}
