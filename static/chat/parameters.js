// How the model should answer: kept in this browser, sent with every question.

const STORE = "tandem-chat-parameters";
const NUMBERS = [
  ..."temperature top_p max_tokens seed min_p top_k".split(" "),
  ..."repetition_penalty presence_penalty frequency_penalty".split(" "),
];
const TEXTS = ["stop_text", "answer_form", "answer_shape"];
const OFF = { min_p: 0, repetition_penalty: 1, presence_penalty: 0, frequency_penalty: 0 };

/** What a field holds before anybody touches it. */
function standard(field) {
  return field.type === "select-one" ? "" : field.defaultValue;
}

export function createParameters() {
  const panel = document.getElementById("parameters");
  const form = document.getElementById("parameters-form");
  const toggle = document.getElementById("parameters-toggle");
  const shape = form.querySelector("[data-form-text]");
  const more = form.querySelector("details");
  const fields = form.elements;

  function show(open) {
    panel.hidden = !open;
    toggle.setAttribute("aria-expanded", String(open));
    if (open) fields.system.focus({ preventScroll: true });
    else toggle.focus({ preventScroll: true });
  }

  function draw() {
    for (const output of form.querySelectorAll("output")) {
      output.value = Number(fields[output.htmlFor.value].value).toLocaleString(
        document.documentElement.lang,
      );
    }
    shape.hidden = !["json_schema", "regex"].includes(fields.answer_form.value);
  }

  function keep() {
    draw();
    const values = Object.fromEntries([...NUMBERS, ...TEXTS].map((name) => [name, fields[name].value]));
    localStorage.setItem(STORE, JSON.stringify(values));
  }

  function restore() {
    const values = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    for (const name of [...NUMBERS, ...TEXTS]) if (name in values) fields[name].value = values[name];
    // What shapes every answer must not do so unseen.
    more.open = [...more.querySelectorAll("[name]")].some((field) => field.value !== standard(field));
    draw();
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
    /** Whether the browser accepts every value; if not, it says which one and why. */
    check() {
      if (form.checkValidity()) return true;
      panel.hidden = false;
      toggle.setAttribute("aria-expanded", "true");
      more.open = true;
      return form.reportValidity();
    },
    /** Fields of a request; an empty one, or one that is off, is left to the engine. */
    values() {
      const given = NUMBERS.filter((name) => fields[name].value !== "");
      const parameters = Object.fromEntries(
        given.map((name) => [name, Number(fields[name].value)]).filter(([name, value]) => OFF[name] !== value),
      );
      for (const name of TEXTS) if (fields[name].value) parameters[name] = fields[name].value;
      return { system: fields.system.value.trim(), parameters };
    },
  };
}
