// The playground: one socket, one answer at a time; the parts below know their own piece of the page.
import { openSocket } from "../socket.js";
import { createComposer } from "./composer.js";
import { createParameters } from "./parameters.js";
import { createRoutes } from "./routes.js";
import { createSide } from "./side.js";
import { createThread } from "./thread.js";

const page = document.getElementById("chat");
const root = page.dataset.root;
const refused = document.getElementById("chat-error");
let conversation = Number(page.dataset.conversation) || null;
let waiting = null; // a request that could not be sent yet

const thread = createThread({ onAgain: answerAgain });
const parameters = createParameters();
const routes = createRoutes(page.dataset.routes);
const side = createSide(page.dataset.list);
const composer = createComposer({ onSend: ask, onStop: () => socket.send({ type: "stop" }) });

const language = encodeURIComponent(document.documentElement.lang);
const socket = openSocket(`/ws/chat?language=${language}`, { onMessage, onState });

function ask(text) {
  if (!parameters.check()) {
    composer.restore(text);
    return;
  }
  thread.addQuestion(text);
  request({ type: "send", text, conversation });
}

function answerAgain() {
  if (composer.busy || conversation === null || !parameters.check()) return;
  thread.removeLastAnswer();
  request({ type: "again", conversation });
}

function request(message) {
  refuse("");
  composer.setBusy(true);
  thread.expectAnswer();
  const whole = { ...message, route: routes.current(), ...parameters.values() };
  if (!socket.send(whole)) waiting = whole;
}

function refuse(text) {
  refused.replaceChildren();
  if (!text) return;
  const notice = document.createElement("p");
  notice.className = "notice notice-bad";
  notice.textContent = text;
  refused.append(notice);
}

function onMessage(message) {
  const react = {
    conversation: () => {
      if (conversation !== message.id) history.replaceState(null, "", `${root}${message.id}/`);
      conversation = message.id;
      page.dataset.conversation = message.id;
      side.refresh(conversation);
    },
    start: () => {
      if (composer.busy) {
        thread.startAnswer(message.message);
      } else if (thread.adoptAnswer(message.message)) {
        composer.setBusy(true);
      }
    },
    paused: () => thread.showPause(true),
    resumed: () => thread.showPause(false),
    delta: () => thread.addText(message.text),
    reasoning: () => thread.addReasoning(message.text),
    render: () => thread.showRendered(message.html, message.length),
    done: () => {
      thread.finishAnswer(message.html);
      composer.setBusy(false);
      side.refresh(conversation);
    },
    error: () => {
      refuse(message.message);
      composer.restore(thread.withdraw());
      composer.setBusy(false);
    },
  }[message.type];
  react?.();
}

function onState(state) {
  if (state === "open") {
    if (waiting && socket.send(waiting)) waiting = null;
    else takeUpUnfinished();
    return;
  }
  if (!composer.busy || waiting) return;
  // The server stops an answer whose reader is gone; it keeps what came.
  if (!thread.accepted()) composer.restore(thread.withdraw());
  composer.setBusy(false);
  refuse(gettext("The connection was lost, so the answer was stopped. What came is kept."));
}

// Its writer may have died with the server's process; the engine keeps the answer for a while.
function takeUpUnfinished() {
  if (thread.unfinished() === null || conversation === null || composer.busy) return;
  socket.send({ type: "follow", conversation });
  refetchUnfinished();
}

// An answer that another tab reads, or that was cut with the connection: show it as it is kept.
async function refetchUnfinished() {
  const message = thread.unfinished();
  if (message === null || conversation === null || composer.busy) return;
  const response = await fetch(`${root}${conversation}/messages/${message}/`);
  if (!response.ok) return;
  thread.replace(message, await response.text());
  if (thread.unfinished() !== null) window.setTimeout(refetchUnfinished, 1500);
}
