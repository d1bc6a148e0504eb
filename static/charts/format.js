// Numbers and words for a reader. A value that is absent is a dash, never a zero; an estimate says so.
const language = document.documentElement.lang || "en";
const formats = new Map();

export const ABSENT = "—";

function fixed(digits) {
  if (!formats.has(digits)) {
    formats.set(
      digits,
      new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }),
    );
  }
  return formats.get(digits);
}

// Stored unit -> scales from small to large: from which size on, the factor, and the name.
const SCALES = {
  ratio: [[0, 100, "%"]],
  bytes: [[0, 2 ** -10, "KiB"], [2 ** 20, 2 ** -20, "MiB"], [2 ** 30, 2 ** -30, "GiB"], [2 ** 40, 2 ** -40, "TiB"]],
  "bytes/s": [[0, 1e-3, "kB/s"], [1e6, 1e-6, "MB/s"], [1e9, 1e-9, "GB/s"]],
  "bits/s": [[0, 1e-6, "Mbit/s"], [1e9, 1e-9, "Gbit/s"]],
  seconds: [[0, 1e6, "µs"], [1e-3, 1e3, "ms"], [1, 1, "s"], [300, 1 / 60, "min"]],
  celsius: [[0, 1, "°C"]],
  watts: [[0, 1, "W"], [1e3, 1e-3, "kW"], [1e6, 1e-6, "MW"]],
  joules: [[0, 1, "J"], [1e3, 1e-3, "kJ"], [1e6, 1e-6, "MJ"]],
  hertz: [[0, 1e-6, "MHz"], [1e9, 1e-9, "GHz"]],
};
const WORDS = {
  requests: () => gettext("requests"),
  "requests/min": () => gettext("per minute"),
  "tokens/s": () => gettext("tokens/s"),
  tokens: () => gettext("tokens"),
  rows: () => gettext("rows"),
  "J/token": () => gettext("J/token"),
  joules_per_token: () => gettext("J/token"),
  restarts: () => gettext("restarts"),
  errors: () => gettext("errors"),
};
const COUNTED = new Set(["requests", "errors", "restarts", "tokens"]);

/** {factor, name} in which a value of this size is read best. */
export function scaleOf(unit, size) {
  const scales = SCALES[unit];
  if (!scales) return { factor: 1, name: WORDS[unit] ? WORDS[unit]() : unit };
  const fitting = scales.filter(([from]) => Math.abs(size) >= from);
  const [, factor, name] = fitting.at(-1) ?? scales[0];
  // What is zero is told in the unit that people think in.
  if (size === 0 && unit === "seconds") return { factor: 1e3, name: "ms" };
  return { factor, name };
}

/** Three significant digits are enough to watch by, and what is counted stays whole. */
export function number(value, unit) {
  if (value === null || value === undefined) return ABSENT;
  const size = Math.abs(value);
  if (COUNTED.has(unit)) return fixed(Number.isInteger(value) ? 0 : 1).format(value);
  if (unit === "ratio" || unit === "%") return fixed(size > 0 && size < 9.95 ? 1 : 0).format(value);
  if (unit === "dB(A)" || unit === "celsius") return fixed(size === 0 || size >= 99.95 ? 0 : 1).format(value);
  return fixed(size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2).format(value);
}

const shortly = new Intl.NumberFormat(language, { maximumSignificantDigits: 3 });

/** For an axis: as few digits as tell the ticks apart. */
export function short(value) {
  return shortly.format(value);
}

/** {number, unit} as words, e.g. "1.24" and "kW". */
export function words(value, unit) {
  if (value === null || value === undefined) return { number: ABSENT, unit: "" };
  const { factor, name } = scaleOf(unit, value);
  return { number: number(value * factor, unit), unit: name };
}

export function withUnit(value, unit) {
  const said = words(value, unit);
  if (!said.unit || COUNTED.has(unit)) return said.number;
  return said.unit === "%" ? `${said.number}%` : `${said.number} ${said.unit}`;
}

/** With what kind of value it is: "≈ 41 dB(A)" for an estimate, "> 60 s" for what has no upper bound. */
export function told(value, unit, { kind = "", beyond = false } = {}) {
  if (value === null || value === undefined) return ABSENT;
  const text = withUnit(value, unit);
  if (beyond) return `> ${text.replace(/[.,]0+(?=\D)/, "")}`;
  return kind === "estimated" ? `≈ ${text}` : text;
}

const KINDS = {
  measured: () => gettext("measured"),
  calibrated: () => gettext("calibrated"),
  estimated: () => gettext("estimated"),
  derived: () => gettext("derived"),
  declared: () => gettext("declared"),
  unavailable: () => gettext("unavailable"),
};

/** "measured · host: /proc/stat" */
export function how(kind, source) {
  const name = KINDS[kind] ? KINDS[kind]() : kind;
  return source ? `${name} · ${source}` : name;
}

const moments = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });

export function momentText(seconds) {
  return moments.format(seconds * 1000);
}
