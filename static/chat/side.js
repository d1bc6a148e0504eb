// The conversations: search, rename, delete; a drawer on a phone.

const TYPING = 250;

/** @param {string} url of the list as HTML */
export function createSide(url) {
  const page = document.getElementById("chat");
  const side = document.getElementById("chat-side");
  const list = document.getElementById("conversations");
  const search = side.querySelector("input[type=search]");
  const toggle = document.querySelector('[data-drawer="toggle"]');
  const narrow = window.matchMedia("(max-width: 68rem)");
  let timer = 0;
  let newest = 0;

  async function refresh(current = page.dataset.conversation) {
    const mine = ++newest;
    const query = new URLSearchParams({ q: search.value, current: current ?? "" });
    const response = await fetch(`${url}?${query}`).catch(() => null); // the header says it is lost
    if (response?.ok && mine === newest) list.innerHTML = await response.text();
  }

  function setDrawer(open) {
    side.classList.toggle("open", open);
    page.classList.toggle("drawer-open", open);
    side.inert = narrow.matches && !open;
    toggle.setAttribute("aria-expanded", String(open));
    if (open) search.focus();
  }

  function openDialog(id, button) {
    const dialog = document.getElementById(id);
    dialog.querySelector("form").action = button.dataset.rename ?? button.dataset.delete;
    const title = dialog.querySelector("[name=title]");
    if (title) title.value = button.dataset.title;
    else dialog.querySelector("[data-title]").textContent = button.dataset.title;
    dialog.showModal();
    title?.select();
  }

  search.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => refresh(), TYPING);
  });
  list.addEventListener("click", (event) => {
    const rename = event.target.closest("[data-rename]");
    const remove = event.target.closest("[data-delete]");
    if (rename) openDialog("rename-dialog", rename);
    if (remove) openDialog("delete-dialog", remove);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-drawer]");
    if (!button) return;
    setDrawer(button.dataset.drawer === "toggle" && !side.classList.contains("open"));
  });
  side.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !side.classList.contains("open")) return;
    setDrawer(false);
    toggle.focus();
  });
  narrow.addEventListener("change", () => setDrawer(false));
  setDrawer(false);

  return { refresh };
}
