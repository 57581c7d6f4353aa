// The studio's interface (../../src/tapword/serve/studio/static/api.js) on the program in this page.

import {Program, errorOf} from './program.js';
import settings from './settings.js';
import {errorText} from './texts.js';

export const MAX_FILE_S = settings.limits.file_s;

const sockets = new Set();
const program = new Program(message => sockets.forEach(socket => socket.dispatch(message)));

const HANDLERS = {
  'api/learn': (audio, {word, kind, anyway}) => program.learn(audio, {word, kind, anyway: Boolean(anyway)}),
  'api/remove': ({take}) => program.remove(take),
  'api/forget': ({word}) => program.forget(word),
  'api/rename': ({old, new: now}) => program.rename(old, now),
  'api/sensitivity': ({word, value}) => program.sensitivity(word, value),
  'api/undo': () => program.undo(),
  'api/model': async (file, {how}) => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    return how === 'inspect' ? program.inspect(bytes) : program.open(bytes);
  },
};

export async function post(path, body = null, query = {}) {
  try {
    await program.start();
    return await HANDLERS[path](body, query) ?? {};
  } catch (error) {
    throw new Error(errorText(errorOf(error)), {cause: error});
  }
}

export const postJson = post;

// Save the words as a file; or the stored bytes that could not be read.
export async function download(name, unread = false) {
  await program.start();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([await program.file(unread)]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  if (unread) await program.saved();
}

// Dispatches every message as an event of its type, and 'open', as the studio's socket does.
export class StudioSocket extends EventTarget {
  #latest = null;
  open = false;

  async connect() {
    await program.start();
    sockets.add(this);
    this.open = true;
    this.dispatchEvent(new Event('open'));
    await program.sendModel();
  }

  dispatch(message) { this.dispatchEvent(new CustomEvent(message.type, {detail: message})); }

  async send(command) {
    try {
      await program.start();
      const answer = await program[command.type](command);
      this.dispatch({...command, ...answer});
    } catch (error) {
      this.dispatch({...command, ...errorOf(error)});
    }
  }

  // Listening and recording share the microphone's chunks: each chunk is given once.
  sendAudio(samples) {
    if (samples === this.#latest) return;
    this.#latest = samples;
    program.push(samples);
  }
}
