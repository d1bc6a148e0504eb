// Where one writes: grows with the text, Enter sends, Escape stops.

/** @param {{onSend: (text: string) => void, onStop: () => void}} handlers */
export function createComposer({ onSend, onStop }) {
  const form = document.getElementById("composer");
  const text = document.getElementById("text");
  const send = document.getElementById("send");
  const stop = document.getElementById("stop");
  const hasKeyboard = window.matchMedia("(hover: hover)").matches; // a phone's would cover the page
  let busy = false;

  function grow() {
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight}px`;
    if (!text.disabled) send.disabled = busy || !text.value.trim();
  }

  function focus() {
    if (hasKeyboard && !text.disabled) text.focus({ preventScroll: true });
  }

  function submit() {
    const value = text.value.trim();
    if (busy || !value || text.disabled) return;
    text.value = "";
    onSend(value);
    grow();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  text.addEventListener("input", grow);
  text.addEventListener("keydown", (event) => {
    // While an input method composes (Chinese, Japanese), Enter belongs to it.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  });
  stop.addEventListener("click", onStop);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && busy && !document.querySelector("dialog[open]")) onStop();
  });
  document.addEventListener("click", (event) => {
    const example = event.target.closest("[data-example]");
    if (!example) return;
    text.value = example.textContent;
    submit();
  });
  grow();
  focus();

  return {
    get busy() {
      return busy;
    },
    setBusy(value) {
      busy = value;
      stop.hidden = !busy;
      send.hidden = busy;
      grow();
      if (!busy) focus();
    },
    restore(value) {
      if (!text.value) text.value = value;
      grow();
    },
  };
}
