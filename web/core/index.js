// Keyword spotting that keeps learning, in a web page: no server, no recording leaves the page.

import {Core, TapwordError} from './core.js';

export {TapwordError};
export const RATE = 16000;
// Chunks of 80 ms that wait if the machine is busy; more are dropped.
const MAX_WAITING = 25;
// Files beside this one are named where they are used: bundlers look for just that.

export class Tapword {
  #call;
  #close;
  // Who listens, or listened last.
  #listening = null;

  constructor(call, close) {
    this.#call = call;
    this.#close = close;
  }

  // From tapword.wasm: its address, its bytes or a compiled module; the one beside this file unless
  // another is given. It works in a Worker where there are any.
  static async load(source = new URL('./tapword.wasm', import.meta.url)) {
    const module = await compiled(source);
    return new Tapword(...await (globalThis.Worker ? inWorker(module) : inThisThread(module)));
  }

  // Audio is samples at 16 kHz (Float32Array in [-1, 1], Int16Array) or an AudioBuffer of any rate.
  async learn(audio, word, options = {}) { await this.#call('learn', await samples(audio), word, options); }
  async reject(audio) { return this.#call('reject', await samples(audio)); }
  async predict(audio, options = {}) { return this.#call('predict', await samples(audio), options); }
  async scores(audio) { return this.#call('scores', await samples(audio)); }
  sensitivity() { return this.#call('sensitivity'); }
  setSensitivity(word, value) { return this.#call('setSensitivity', word, value); }
  forget(word) { return this.#call('forget', word); }
  rename(word, now) { return this.#call('rename', word, now); }
  words() { return this.#call('words'); }
  save() { return this.#call('save'); }
  load(bytes) { return this.#call('load', bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes)); }

  // A stream chunk by chunk; `listen` does all of this.
  startStream() { return this.#call('startStream'); }
  gap(lost) { return this.#call('gap', lost); }
  push(chunk) { return this.#call('push', chunk); }
  streamScores() { return this.#call('streamScores'); }
  flush() { return this.#call('flush'); }

  // Teaching by voice: a recording chunk by chunk, the word in it, and checks before it is taught.
  startRecording() { return this.#call('startRecording'); }
  pushRecording(chunk) { return this.#call('pushRecording', chunk); }
  async examine(audio) { return this.#call('examine', await samples(audio)); }
  async findTakes(audio) { return this.#call('findTakes', await samples(audio)); }
  async check(audio, word, kind = 'take') { return this.#call('check', await samples(audio), word, kind); }
  accept(word) { return this.#call('accept', word); }

  // Listen to a MediaStream, or a node of an AudioContext, until `stop` of what this gives is called,
  // or this is called again: the core hears one stream.
  async listen(source, onEvent, onError = error => { throw error; }) {
    let waiting = 0, lost = 0, ended = false, release = null, released = null;
    const stop = () => {
      ended = true;
      return released ??= Promise.resolve(release).then(end => end?.());
    };
    this.#stop();
    this.#listening = {stop};
    await this.startStream();
    const take = async chunk => {
      if (ended) return;
      if (waiting >= MAX_WAITING) { lost += chunk.length; return; }
      waiting++;
      const missing = lost;
      lost = 0;
      try {
        // Both are asked for at once, so that no later chunk comes between them.
        const [, events] = await Promise.all([missing && this.gap(missing), this.push(chunk)]);
        for (const event of events) if (!ended) onEvent(event);
      } catch (error) {
        if (!ended) onError(error);
      } finally {
        waiting--;
      }
    };
    if (!ended) await (release = capture(source, take));
    return {stop};
  }

  // At once; what could not begin has told so where it was asked for.
  #stop() { this.#listening?.stop().catch(() => {}); }

  // Let go of the thread and all that is in it; whatever is asked after that is refused.
  close() {
    this.#stop();
    this.#close();
  }
}

// So many seconds of a MediaStream, or of a node of an AudioContext, as samples at 16 kHz.
export async function record(source, seconds) {
  const recorded = new Int16Array(Math.round(seconds * RATE));
  let filled = 0;
  /** @type {() => void} */
  let full;
  const filling = new Promise(resolve => { full = () => resolve(null); });
  const release = await capture(source, chunk => {
    recorded.set(chunk.subarray(0, recorded.length - filled), filled);
    filled = Math.min(filled + chunk.length, recorded.length);
    if (filled === recorded.length) full();
  });
  await filling;
  await release();
  return recorded;
}

async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (ArrayBuffer.isView(source) || source instanceof ArrayBuffer) return WebAssembly.compile(/** @type {BufferSource} */ (source));
  // node's fetch reads no files. Bundlers are not to look for what only node has.
  if (globalThis.process?.versions?.node && String(source).startsWith('file:')) {
    const name = 'node:fs/promises', {readFile} = await import(/* webpackIgnore: true */ /* @vite-ignore */ name);
    return WebAssembly.compile(await readFile(new URL(source)));
  }
  const answer = await fetch(source);
  if (!answer.ok) throw new Error(`${source} could not be loaded (${answer.status})`);
  // Not as a stream: plain file servers do not all know what kind of file this is.
  return WebAssembly.compile(await answer.arrayBuffer());
}

async function inThisThread(module) {
  let core = await Core.open(module);
  const call = async (method, ...given) => {
    if (!core) throw closed();
    return core[method](...given);
  };
  return [call, () => { core = null; }];
}

const closed = () => new Error('the spotter was closed: load another');

async function inWorker(module) {
  const worker = new Worker(new URL('./worker.js', import.meta.url), {type: 'module'});
  const open = new Map();
  let calls = 0, over = null;
  // From here on nothing is answered, and every call says why.
  const end = error => {
    over ??= error;
    worker.onmessage = null;
    worker.terminate();
    open.forEach(({no}) => no(over));
    open.clear();
  };
  worker.onmessage = ({data: {id, value, error}}) => {
    const {yes, no} = open.get(id);
    open.delete(id);
    if (!error) yes(value);
    else no(error.code ? new TapwordError(error.code, error.message) : Object.assign(new Error(error.message), {name: error.name}));
  };
  worker.onerror = event => end(new Error(event.message || 'worker.js could not be loaded'));
  const call = (method, ...given) => new Promise((yes, no) => {
    if (over) throw over;
    const id = calls++;
    worker.postMessage({id, method, given});
    open.set(id, {yes, no});
  });
  try {
    await call('open', module);
  } catch (error) {
    end(error);
    throw error;
  }
  return [call, () => end(closed())];
}

// Samples at 16 kHz of what may be learned or asked.
async function samples(audio) {
  if (!globalThis.AudioBuffer || !(audio instanceof AudioBuffer)) return audio;
  const length = Math.max(1, Math.round(audio.duration * RATE));
  const context = new OfflineAudioContext(1, length, RATE);
  const source = new AudioBufferSourceNode(context, {buffer: audio});
  source.connect(context.destination);
  source.start();
  return (await context.startRendering()).getChannelData(0);
}

// Give chunks of 16 kHz from a stream or a node; resolves to what ends that.
async function capture(source, onChunk) {
  const lent = source instanceof AudioNode;
  const context = /** @type {AudioContext} */ (lent ? source.context : await contextOf(source));
  const close = async () => { if (!lent) await context.close(); };
  try {
    await context.audioWorklet.addModule(new URL('./capture.js', import.meta.url));
    const from = lent ? source : context.createMediaStreamSource(source);
    const node = new AudioWorkletNode(context, 'capture', {numberOfOutputs: 0});
    node.port.onmessage = ({data}) => onChunk(data);
    from.connect(node);
    if (!lent) await context.resume();
    return async () => {
      node.port.onmessage = null;
      from.disconnect(node);
      await close();
    };
  } catch (error) {
    await close();
    throw error;
  }
}

// A context of our rate resamples the stream; where a browser refuses to, the worklet does.
async function contextOf(stream) {
  const context = new AudioContext({sampleRate: RATE});
  try {
    context.createMediaStreamSource(stream).disconnect();
    return context;
  } catch {
    await context.close();
    return new AudioContext();
  }
}
