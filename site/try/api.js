// What the studio's page asks its program for, asked of the program in this page.

import {Program} from './program.js';
import {sentence, texts} from './texts.js';

const lines = new Set();
const program = new Program(message => lines.forEach(line => line.give(message)));

const ANSWERS = {
  '/api/learn': (sound, {word, anyway}) => program.learn(sound, word, Boolean(anyway)),
  '/api/remove': ({take}) => program.remove(take),
  '/api/forget': ({word}) => program.forget(word),
  '/api/rename': ({old, new: now}) => program.rename(old, now),
  '/api/sensitivity': ({word, value}) => program.sensitivity(word, value),
  '/api/undo': () => program.undo(),
  '/api/model': async file => program.open(new Uint8Array(await file.arrayBuffer())),
};

export async function post(path, body, query = {}) {
  try {
    await program.start();
    return await ANSWERS[path](body, query) ?? {};
  } catch (error) {
    throw new Error(said(error), {cause: error});
  }
}

export const postJson = post;

// What the core refuses has a name, by which it is said in the page's language.
const said = error => texts.refusals[error.code] ?? sentence(error.message);

// Save what was taught as a file; or what the browser held and could not be read.
export async function download(name, unread = false) {
  await program.start();
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([await program.file(unread)]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  if (unread) await program.saved();
}

// Emits every message by its type, and 'open', as the studio's line does.
export class Line extends EventTarget {
  #latest = null;
  open = false;

  async connect() {
    await program.start();
    lines.add(this);
    this.open = true;
    this.dispatchEvent(new Event('open'));
    await program.news();
  }

  give(message) { this.dispatchEvent(new CustomEvent(message.type, {detail: message})); }

  async wish(wish) {
    try {
      await program.start();
      const answer = await program[wish.type](wish);
      this.give({...wish, ...answer});
    } catch (error) {
      this.give({...wish, error: said(error)});
    }
  }

  // Listening and recording share the microphone's chunks: each is given once.
  sound(samples) {
    if (samples === this.#latest) return;
    this.#latest = samples;
    program.sound(samples);
  }
}
