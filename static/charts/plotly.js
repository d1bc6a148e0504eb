// Plotly from our own server, once a page and only on pages that draw; and the theme it draws in.
import { COLOURS } from "./lines.js";

export const CONFIG = { displayModeBar: false, displaylogo: false, doubleClick: false, responsive: true };
export const MARGIN = { l: 44, r: 8, t: 8, b: 25 };

let loading = null;

export function loadPlotly(url) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error(`${url} did not load`)));
    document.head.append(script);
  });
  return loading;
}

export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const token = (name) => style.getPropertyValue(name).trim();
  return {
    lines: Array.from({ length: COLOURS }, (_, index) => token(`--chart-${index + 1}`)),
    grid: token("--chart-grid"),
    text: token("--chart-text"),
    raised: token("--raised"),
    surface: token("--surface"),
    accent: token("--accent"),
    sunken: token("--sunken"),
    line: token("--line-strong"),
    strong: token("--text"),
    warn: token("--warn"),
    bad: token("--bad"),
    faint: token("--faint"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

export function faded(colour, opacity) {
  const [, r, g, b] = /^#(..)(..)(..)$/.exec(colour) ?? [null, "80", "80", "80"];
  return `rgba(${parseInt(r, 16)},${parseInt(g, 16)},${parseInt(b, 16)},${opacity})`;
}

// Plotly writes times as UTC; the reader's clock is meant.
export function localTime(seconds) {
  return seconds * 1000 - new Date(seconds * 1000).getTimezoneOffset() * 60_000;
}

/** Back from an axis: Plotly answers with a date without a zone. */
export function unlocalTime(text) {
  return Date.parse(String(text).replace(" ", "T").replace(/(\.\d{3})\d*/, "$1")) / 1000;
}

export function escape(text) {
  return text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
}

const DAY = 86_400;

/** How times are written under an axis of this length. */
export function tickFormat(span) {
  if (span <= 300) return "%H:%M:%S";
  if (span <= 1.5 * DAY) return "%H:%M";
  if (span <= 4 * DAY) return "%m-%d %H:%M";
  return span <= 120 * DAY ? "%m-%d" : "%Y-%m";
}
