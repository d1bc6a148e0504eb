// The messages. Answers arrive as text; the server sends safe HTML of all but the newest words.

const BLOCKS = new Set([
  ..."P PRE CODE UL OL LI BLOCKQUOTE H1 H2 H3 H4 H5 H6 TABLE TBODY TR TD".split(" "),
]);
const NEAR_END = 80; // px

/** @param {{onAgain: () => void}} handlers */
export function createThread({ onAgain }) {
  const scroll = document.getElementById("scroll");
  const list = document.getElementById("messages");
  const tail = document.createElement("span");
  tail.className = "tail";
  let answer = null; // the article being written
  let text = "";
  let rendered = 0; // UTF-16 units of `text` already shown as HTML
  let question = null; // sent, not yet accepted

  const copyOf = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
  const find = (message) => list.querySelector(`[data-message="${message}"]`);

  // Follows the end only while the reader is there.
  let following = true;
  let height = scroll.clientHeight;
  scroll.addEventListener("scroll", () => {
    if (scroll.clientHeight !== height) return; // the page changed, not the reader's mind
    following = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_END;
  });

  function keepingEnd(change) {
    const was = following;
    change();
    if (was) toEnd();
  }

  function toEnd() {
    scroll.scrollTop = scroll.scrollHeight;
    following = true;
  }

  function lastBlock(prose) {
    let node = prose;
    while (node.lastElementChild && BLOCKS.has(node.lastElementChild.tagName)) {
      node = node.lastElementChild;
    }
    return node;
  }

  function showTail() {
    tail.textContent = text.slice(rendered);
    lastBlock(answer.querySelector(".prose")).append(tail);
  }

  function addCopyButtons(within) {
    for (const block of within.querySelectorAll(".prose pre")) {
      if (block.querySelector("[data-copy-code]")) continue;
      const language = block.querySelector("code")?.className.replace("language-", "") ?? "";
      block.dataset.language = language;
      block.append(copyOf("code-copy"));
    }
  }

  function fromHtml(html) {
    const holder = document.createElement("template");
    holder.innerHTML = html; // our own template, its text sanitised by the server
    const article = holder.content.querySelector("article");
    addCopyButtons(article);
    return article;
  }

  async function copy(value, button) {
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      const area = document.createElement("textarea"); // plain HTTP has no clipboard API
      area.value = value;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.classList.add("copied");
    const label = button.querySelector("span");
    if (label) label.textContent = gettext("Copied");
    window.setTimeout(() => {
      button.classList.remove("copied");
      if (label) label.textContent = gettext("Copy");
    }, 2000);
  }

  list.addEventListener("click", (event) => {
    const code = event.target.closest("[data-copy-code]");
    if (code) copy(code.parentElement.querySelector("code").textContent, code);
    const whole = event.target.closest("[data-copy-answer]");
    if (whole) copy(whole.closest("article").querySelector(".prose").innerText, whole);
    if (event.target.closest("[data-again]")) onAgain();
  });
  addCopyButtons(list);
  toEnd();
  // A notice that appears, a growing composer, a turned phone: the end stays in sight.
  new ResizeObserver(() => {
    height = scroll.clientHeight;
    if (following) toEnd();
  }).observe(scroll);

  return {
    addQuestion(value) {
      document.getElementById("empty")?.setAttribute("hidden", "");
      question = copyOf("turn-user");
      question.querySelector(".bubble").textContent = value;
      list.append(question);
      toEnd();
    },
    expectAnswer() {
      answer = copyOf("turn-answer");
      text = "";
      rendered = 0;
      list.append(answer);
      toEnd();
    },
    startAnswer(message) {
      answer.dataset.message = message;
      question = null;
    },
    /** Writes on an answer that is shown as it was kept; it comes again from its beginning. */
    adoptAnswer(message) {
      answer = find(message);
      if (answer === null) return false;
      text = "";
      rendered = 0;
      answer.querySelector(".prose").replaceChildren();
      answer.querySelector(".reasoning")?.remove();
      return true;
    },
    /** Says that the model recovers, for as long as it does. */
    showPause(paused) {
      keepingEnd(() => {
        answer?.querySelector(".pause")?.remove();
        if (!paused || answer === null) return;
        const line = document.createElement("p");
        line.className = "pause";
        line.setAttribute("role", "status");
        line.textContent = gettext("One moment: the model is recovering…");
        answer.querySelector(".prose").after(line);
      });
    },
    addReasoning(more) {
      keepingEnd(() => {
        let thoughts = answer.querySelector(".reasoning");
        if (!thoughts) {
          thoughts = copyOf("reasoning");
          answer.querySelector(".prose").before(thoughts);
        }
        thoughts.querySelector(".reasoning-text").append(more);
      });
    },
    addText(more) {
      keepingEnd(() => {
        answer.querySelector(".thinking")?.remove();
        if (!text) answer.querySelector(".reasoning")?.removeAttribute("open");
        text += more;
        showTail();
      });
    },
    showRendered(html, length) {
      keepingEnd(() => {
        answer.querySelector(".prose").innerHTML = html; // sanitised by the server
        rendered = length;
        addCopyButtons(answer);
        showTail();
      });
    },
    finishAnswer(html) {
      keepingEnd(() => {
        const finished = fromHtml(html);
        answer.replaceWith(finished);
        answer = null;
      });
    },
    /** Whether the answer being written has a row of its own on the server. */
    accepted() {
      return Boolean(answer?.dataset.message);
    },
    /** The question that was refused, taken back out of the thread. */
    withdraw() {
      answer?.remove();
      answer = null;
      const value = question?.querySelector(".bubble").textContent ?? "";
      question?.remove();
      question = null;
      if (!list.children.length) document.getElementById("empty")?.removeAttribute("hidden");
      return value;
    },
    removeLastAnswer() {
      const last = list.lastElementChild;
      if (last?.classList.contains("turn-answer")) last.remove();
    },
    unfinished() {
      const article = list.querySelector('[data-status="streaming"][data-message]');
      return article ? article.dataset.message : null;
    },
    replace(message, html) {
      keepingEnd(() => find(message)?.replaceWith(fromHtml(html)));
    },
  };
}
