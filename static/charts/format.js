// Numbers and words for a reader. A value that is absent is a dash, never a zero.
const language = document.documentElement.lang;
const formats = new Map();

function fixed(digits) {
  if (!formats.has(digits)) {
    formats.set(
      digits,
      new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }),
    );
  }
  return formats.get(digits);
}

/** Three significant digits are enough to watch by, and whole numbers stay whole. */
export function number(value, unit) {
  if (value === null || value === undefined) return "—";
  const size = Math.abs(value);
  if (unit === "requests") return fixed(Number.isInteger(value) ? 0 : 1).format(value);
  if (unit === "%") return fixed(size > 0 && size < 10 ? 1 : 0).format(value);
  return fixed(size === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2).format(value);
}

export function unitName(unit) {
  if (unit === "requests") return "";
  if (unit === "tokens/s") return gettext("tokens/s");
  return unit;
}

export function withUnit(value, unit) {
  if (value === null || value === undefined) return "—";
  const name = unitName(unit);
  if (!name) return number(value, unit);
  return unit === "%" ? `${number(value, unit)}%` : `${number(value, unit)} ${name}`;
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
