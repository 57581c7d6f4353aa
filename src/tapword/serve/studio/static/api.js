// HTTP requests to the studio, and the WebSocket for audio, commands and updates.

import {errorText, texts} from './texts.js';

// The studio keeps the changes of each page by this identifier, for undo.
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');

// The longest recording that the studio accepts; it may contain several takes.
export const MAX_FILE_S = 60;

const GATEWAY_ERRORS = [502, 504];

async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error(texts.silent);
  }
  if (answer.ok) return answer;
  if (answer.status === 403) throw new Error(texts.closed);
  // A proxy in front of the studio answers while the studio does not run.
  if (GATEWAY_ERRORS.includes(answer.status)) throw new Error(texts.silent);
  let value = {error: texts.refused(answer.status)};
  try { value = await answer.json(); } catch { /* not JSON: the status says enough */ }
  throw new Error(errorText(value));
}

const requestJson = async (path, options) => (await request(path, options)).json();

// Save a file under the name that the studio gives it; returns the name.
export async function download(path) {
  const answer = await request(path, {});
  const encoded = answer.headers.get('Content-Disposition')?.match(/UTF-8''(.*)$/)?.[1];
  const name = decodeURIComponent(encoded ?? 'tapword');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return name;
}

export const get = path => requestJson(path, {});

export function post(path, body = null, query = {}) {
  return requestJson(`${path}?${new URLSearchParams({page: PAGE, ...query})}`, {method: 'POST', body});
}

export const postJson = (path, value) => post(path, JSON.stringify(value));

export function decodeAudio(base64) {
  const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
  return new Int16Array(bytes.buffer);
}

const MAX_BUFFERED_BYTES = 64_000;

// Dispatches every message of the studio as an event of its type, and 'open' and 'closed'.
export class StudioSocket extends EventTarget {
  #socket = null;
  #wait_ms = 500;
  #gap = false;
  #latest = null;

  connect() {
    // Relative: Home Assistant shows the page below a path of its own.
    const address = new URL(`api/live?page=${PAGE}`, document.baseURI);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(address);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      this.#socket = socket;
      this.#wait_ms = 500;
      this.dispatchEvent(new Event('open'));
    };
    socket.onmessage = ({data}) => {
      if (data instanceof ArrayBuffer) {
        this.dispatchEvent(new CustomEvent('sound', {detail: new Int16Array(data)}));
        return;
      }
      const message = JSON.parse(data);
      if (message.audio) message.audio = decodeAudio(message.audio);
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

  send(command) {
    if (!this.open) throw new Error(texts.notConnected);
    this.#socket.send(JSON.stringify(command));
  }

  // A slow connection drops audio instead of falling behind, and reports the gap. Listening and
  // recording share the microphone's chunks: each chunk is sent once.
  sendAudio(samples) {
    if (!this.open || samples === this.#latest) return;
    this.#latest = samples;
    if (this.#socket.bufferedAmount > MAX_BUFFERED_BYTES) { this.#gap = true; return; }
    if (this.#gap) { this.#gap = false; this.send({type: 'gap'}); }
    this.#socket.send(samples);
  }
}
