// How the model should answer: kept in this browser, sent with every question.

const STORE = "tandem-chat-parameters";
const KEPT = ["temperature", "top_p", "max_tokens", "seed"];

export function createParameters() {
  const panel = document.getElementById("parameters");
  const form = document.getElementById("parameters-form");
  const toggle = document.getElementById("parameters-toggle");
  const fields = form.elements;

  function show(open) {
    panel.hidden = !open;
    toggle.setAttribute("aria-expanded", String(open));
    if (open) fields.system.focus({ preventScroll: true });
    else toggle.focus({ preventScroll: true });
  }

  function label() {
    for (const output of form.querySelectorAll("output")) {
      output.value = Number(fields[output.htmlFor.value].value).toLocaleString(
        document.documentElement.lang,
      );
    }
  }

  function keep() {
    label();
    const values = Object.fromEntries(KEPT.map((name) => [name, fields[name].value]));
    localStorage.setItem(STORE, JSON.stringify(values));
  }

  function restore() {
    const values = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    for (const name of KEPT) if (name in values) fields[name].value = values[name];
    label();
  }

  form.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => window.setTimeout(keep)); // after the reset has happened
  toggle.addEventListener("click", () => show(panel.hidden));
  form.querySelector("[data-parameters-close]").addEventListener("click", () => show(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(false);
  });
  restore();

  return {
    /** Fields of a request; an empty one is left to the engine. */
    values() {
      const given = KEPT.filter((name) => fields[name].value !== "");
      const numbers = given.map((name) => [name, Number(fields[name].value)]);
      return { system: fields.system.value.trim(), parameters: Object.fromEntries(numbers) };
    },
  };
}
