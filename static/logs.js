// The log page: local times, and new lines on top while one follows.

const PERIOD = 2000;
const MOST = 1000;

const list = document.getElementById("logs");
const follow = document.getElementById("logs-follow");
const lost = document.getElementById("logs-lost");
const empty = document.getElementById("logs-empty");

const clock = new Intl.DateTimeFormat(document.documentElement.lang, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

function localize(root) {
  for (const time of root.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    time.title = at.toISOString();
    time.textContent = clock.format(at);
  }
}

async function fetchNew() {
  const address = new URL(list.dataset.url, location.href);
  address.searchParams.set("after", list.dataset.after);
  const answer = await fetch(address, { signal: AbortSignal.timeout(10_000) });
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  const fresh = document.createElement("template");
  fresh.innerHTML = await answer.text();
  const newest = fresh.content.querySelector("[data-pk]");
  if (!newest) return;
  localize(fresh.content);
  list.dataset.after = newest.dataset.pk;
  list.prepend(fresh.content);
  empty.hidden = true;
  while (list.childElementCount > MOST) list.lastElementChild.remove();
}

let timer = 0;

async function tick() {
  timer = 0;
  if (!follow.checked) return;
  if (!document.hidden) {
    try {
      await fetchNew();
      lost.hidden = true;
    } catch {
      lost.hidden = false;
    }
  }
  timer ||= setTimeout(tick, PERIOD);
}

if (list) localize(list);

if (follow) {
  follow.addEventListener("change", () => {
    if (!follow.checked) lost.hidden = true;
    else if (!timer) tick();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !follow.checked) return;
    clearTimeout(timer);
    tick();
  });
}
