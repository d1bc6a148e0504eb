// Which deployment answers, whether it can, and what stands in its way.

const POLL = 3000; // while the chosen one is not ready

/** @param {string} url of the routes as JSON */
export function createRoutes(url) {
  const select = document.getElementById("route");
  const notice = document.getElementById("route-notice");
  const ranks = document.getElementById("route-ranks");
  const maxTokens = document.getElementById("max_tokens");
  let known = JSON.parse(document.getElementById("chat-routes").textContent);
  let timer = 0;

  function draw() {
    const chosen = known.find((route) => route.name === select?.value);
    setHtml(notice, chosen && !chosen.ready ? chosen.html : "");
    setHtml(ranks, chosen?.ready ? chosen.html : "");
    if (chosen) maxTokens.max = chosen.context_length;
    window.clearTimeout(timer);
    if (chosen && !chosen.ready) timer = window.setTimeout(refresh, POLL);
  }

  function setHtml(element, html) {
    if (element.dataset.shown === html) return;
    element.dataset.shown = html;
    element.innerHTML = html; // our own template, everything in it escaped
  }

  // Options change in place: an open menu stays open.
  function drawOptions() {
    known.forEach((route, index) => {
      const option = select.options[index] ?? select.appendChild(document.createElement("option"));
      option.value = route.name;
      option.textContent = route.label;
    });
    while (select.options.length > known.length) select.lastElementChild.remove();
  }

  async function refresh() {
    window.clearTimeout(timer);
    try {
      const response = await fetch(url);
      if (!response.ok) return;
      known = (await response.json()).routes;
    } catch {
      timer = window.setTimeout(refresh, POLL); // the header already says that the link is lost
      return;
    }
    if (!select) {
      if (known.length) window.location.reload();
      return;
    }
    const before = select.value;
    drawOptions();
    if (known.some((route) => route.name === before)) select.value = before;
    draw();
  }

  select?.addEventListener("change", draw);
  document.body.addEventListener("fleet", refresh);
  draw();

  return { current: () => select?.value ?? "" };
}
