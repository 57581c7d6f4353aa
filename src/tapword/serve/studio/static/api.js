// Requests to the studio, and the live line that comes back by itself.

export const CLOSED = 'This page may not talk to the studio any more, which was started anew. ' +
  'Open the link that its command printed in the terminal.';

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error('The studio does not answer. Is the tapword program still running?');
  }
  let value = {};
  try { value = await answer.json(); } catch { /* not JSON: the status says enough */ }
  if (answer.status === 403) throw new Error(CLOSED);
  if (!answer.ok) throw new Error(sentence(value.error ?? `The studio refused (${answer.status}).`));
  return value;
}

export const get = path => ask(path, {});

export function post(path, body, query = {}) {
  const parameters = new URLSearchParams(query).toString();
  return ask(parameters ? `${path}?${parameters}` : path, {method: 'POST', body});
}

export const postJson = (path, value) => post(path, JSON.stringify(value));

export function sentence(text) {
  const trimmed = String(text).trim();
  const upper = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}

// A sentence, and what there is to warn of.
export const sentences = (first, warnings) => [first, ...warnings.map(sentence)].join(' ');

const MOST_WAITING_BYTES = 64_000;

// Emits every message of the studio by its type, and 'open' and 'closed'.
export class Line extends EventTarget {
  #socket = null;
  #wait_ms = 500;
  #gap = false;
  #latest = null;

  connect() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/api/live`);
    socket.onopen = () => {
      this.#socket = socket;
      this.#wait_ms = 500;
      this.dispatchEvent(new Event('open'));
    };
    socket.onmessage = ({data}) => {
      const message = JSON.parse(data);
      this.dispatchEvent(new CustomEvent(message.type, {detail: message}));
    };
    socket.onclose = () => {
      this.#socket = null;
      this.dispatchEvent(new Event('closed'));
      setTimeout(() => this.connect(), this.#wait_ms);
      this.#wait_ms = Math.min(this.#wait_ms * 2, 5000);
    };
  }

  get open() { return this.#socket !== null; }

  wish(message) {
    if (!this.open) throw new Error('The studio is not connected; it will try again by itself.');
    this.#socket.send(JSON.stringify(message));
  }

  // A line that cannot keep up loses sound rather than falling behind, and says so. Listening and
  // recording share the microphone's chunks: each is sent once, whoever gives it first.
  sound(samples) {
    if (!this.open || samples === this.#latest) return;
    this.#latest = samples;
    if (this.#socket.bufferedAmount > MOST_WAITING_BYTES) { this.#gap = true; return; }
    if (this.#gap) { this.#gap = false; this.wish({type: 'gap'}); }
    this.#socket.send(samples);
  }
}
