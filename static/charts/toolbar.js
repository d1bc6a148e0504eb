// The controls above the charts: span, live or past, own range, link, CSV.
import { setText } from "./dom.js";
import { momentText } from "./format.js";

export class Toolbar {
  constructor(root, range, { onSpan, onLive, onRange }) {
    this.root = root;
    this.range = range;
    this.back = root.querySelector("[data-back]");
    this.past = root.querySelector("[data-past]");
    this.form = root.querySelector("[data-range]");
    this.csv = root.querySelector("[data-csv]");
    root.addEventListener("click", (event) => {
      const span = event.target.closest("[data-span]");
      if (span) onSpan(Number(span.dataset.span));
      if (event.target.closest("[data-back]")) onLive();
      const link = event.target.closest("[data-link-copy]");
      if (link) this.copy(link);
    });
    this.form.addEventListener("submit", (event) => this.submit(event, onRange));
  }

  submit(event, onRange) {
    event.preventDefault();
    const [from, to] = ["from", "to"].map((name) => Date.parse(this.form.elements[name].value) / 1000);
    if (!(to > from)) {
      this.form.elements.to.setCustomValidity(gettext("The end must lie after the beginning."));
      this.form.elements.to.reportValidity();
      this.form.elements.to.addEventListener("input", () => this.form.elements.to.setCustomValidity(""), { once: true });
      return;
    }
    this.form.closest("details").open = false;
    onRange(from, to);
  }

  /** The address says which time is shown, so the address is the link. */
  async copy(button) {
    const label = button.querySelector("[data-copy-label]");
    const before = label.textContent;
    try {
      await navigator.clipboard.writeText(window.location.href);
      label.textContent = gettext("Copied");
    } catch {
      // Browsers offer the clipboard to secure pages only.
      label.textContent = gettext("Copy the address of this page");
    }
    window.setTimeout(() => (label.textContent = before), 2500);
  }

  show(now, query) {
    const { live, span } = this.range;
    for (const button of this.root.querySelectorAll("[data-span]")) {
      button.setAttribute("aria-pressed", String(live && Number(button.dataset.span) === span));
    }
    this.back.hidden = live;
    const { from, to } = this.range.at(now);
    setText(this.past, live ? "" : `${momentText(from)} – ${momentText(to)}`);
    this.past.hidden = live;
    this.csv.href = `${this.csv.dataset.url}?${query}`;
    if (!this.form.contains(document.activeElement)) {
      this.form.elements.from.value = forInput(from);
      this.form.elements.to.value = forInput(to);
    }
  }
}

function forInput(seconds) {
  const at = new Date((seconds - new Date(seconds * 1000).getTimezoneOffset() * 60) * 1000);
  return at.toISOString().slice(0, 16);
}
