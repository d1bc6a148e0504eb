// One JSON WebSocket that stays: it reconnects with backoff until close() is called.

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;

/**
 * @param {string} path e.g. "/ws/events"
 * @param {{onMessage?: (message: any) => void, onState?: (state: "open" | "closed") => void}} handlers
 * @returns {{send: (message: any) => boolean, close: () => void}} send() is false while not connected
 */
export function openSocket(path, { onMessage = () => {}, onState = () => {} } = {}) {
  let socket = null;
  let delay = FIRST_DELAY;
  let timer = 0;
  let ended = false;

  function connect() {
    const scheme = window.location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${window.location.host}${path}`);
    socket.addEventListener("open", () => {
      delay = FIRST_DELAY;
      onState("open");
    });
    socket.addEventListener("message", (event) => onMessage(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      if (ended) return;
      onState("closed");
      timer = window.setTimeout(connect, delay * (0.75 + Math.random() / 2));
      delay = Math.min(delay * 2, LONGEST_DELAY);
    });
  }

  // A laptop that wakes up, or a network that returns, should not wait out the backoff.
  function retryNow() {
    if (ended || (socket && socket.readyState <= WebSocket.OPEN)) return;
    window.clearTimeout(timer);
    delay = FIRST_DELAY;
    connect();
  }

  // Leaving the page is not a lost connection.
  function close() {
    ended = true;
    window.clearTimeout(timer);
    window.removeEventListener("online", retryNow);
    window.removeEventListener("pagehide", close);
    socket?.close();
  }

  window.addEventListener("online", retryNow);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) window.location.reload();
  });
  connect();
  return {
    send(message) {
      if (socket.readyState !== WebSocket.OPEN) return false;
      socket.send(JSON.stringify(message));
      return true;
    },
    close,
  };
}
