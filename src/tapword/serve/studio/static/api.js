// Requests to the studio, and the live line that comes back by itself.

import {sentence, texts} from './texts.js';

// By its name the studio knows what this page changed, and can undo it.
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');

async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error(texts.silent);
  }
  if (answer.ok) return answer;
  if (answer.status === 403) throw new Error(texts.closed);
  let value = {};
  try { value = await answer.json(); } catch { /* not JSON: the status says enough */ }
  throw new Error(sentence(value.error ?? texts.refused(answer.status)));
}

const ask = async (path, options) => (await request(path, options)).json();

// Save what the studio makes under the name that it gives it; gives the name.
export async function download(path) {
  const answer = await request(path, {});
  const named = answer.headers.get('Content-Disposition')?.match(/UTF-8''(.*)$/)?.[1];
  const name = decodeURIComponent(named ?? 'tapword');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return name;
}

export const get = path => ask(path, {});

export function post(path, body, query = {}) {
  return ask(`${path}?${new URLSearchParams({page: PAGE, ...query})}`, {method: 'POST', body});
}

export const postJson = (path, value) => post(path, JSON.stringify(value));

// Sound as the studio sends it.
function decoded(base64) {
  const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  return new Int16Array(bytes.buffer);
}

const MOST_WAITING_BYTES = 64_000;

// Emits every message of the studio by its type, and 'open' and 'closed'.
export class Line extends EventTarget {
  #socket = null;
  #wait_ms = 500;
  #gap = false;
  #latest = null;

  connect() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/api/live?page=${PAGE}`);
    socket.onopen = () => {
      this.#socket = socket;
      this.#wait_ms = 500;
      this.dispatchEvent(new Event('open'));
    };
    socket.onmessage = ({data}) => {
      const message = JSON.parse(data);
      if (message.sound) message.sound = decoded(message.sound);
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
    if (!this.open) throw new Error(texts.notConnected);
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
