// Runs before the first paint: the reader's choice, else the system's, becomes <html data-theme>.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    const choice = localStorage.getItem("tandem-theme");
    return choice === "light" || choice === "dark" ? choice : "auto";
  };

  function apply() {
    const choice = stored();
    const theme = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
    const changed = root.dataset.theme !== theme;
    root.dataset.theme = theme;
    root.dataset.themeChoice = choice;
    if (changed) document.dispatchEvent(new CustomEvent("themechange", { detail: { theme } }));
  }

  system.addEventListener("change", apply);
  window.addEventListener("storage", apply);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-set-theme]");
    if (!button) return;
    localStorage.setItem("tandem-theme", button.dataset.setTheme);
    apply();
    button.closest("details")?.removeAttribute("open");
  });
  apply();
})();
