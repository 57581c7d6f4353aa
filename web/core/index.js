// Keyword spotting that keeps learning, in a web page: no server, no recording leaves the page.

import {Core, TapwordError} from './core.js';

export {TapwordError};
export const RATE = 16000;
// Chunks of 80 ms that may wait for a machine that is busy; then sound is lost rather than late.
const MOST_WAITING = 25;
// Files beside this one are named where they are used: bundlers look for just that.

export class Tapword {
  #call;
  #close;

  constructor(call, close) {
    this.#call = call;
    this.#close = close;
  }

  // From tapword.wasm: its address, its bytes or a compiled module; the one beside this file unless
  // another is given. It works in a Worker where there are any.
  static async load(source = new URL('./tapword.wasm', import.meta.url)) {
    const module = await compiled(source);
    const [call, close] = globalThis.Worker ? inWorker() : await inThisThread(module);
    if (globalThis.Worker) await call('open', module);
    return new Tapword(call, close);
  }

  // Audio is samples at 16 kHz (Float32Array in [-1, 1], Int16Array) or an AudioBuffer of any rate.
  async learn(audio, word) { await this.#call('learn', await samples(audio), word); }
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

  // A stream chunk by chunk, for those who have its samples; `listen` does all of this.
  startStream() { return this.#call('startStream'); }
  gap(samples) { return this.#call('gap', samples); }
  hear(chunk) { return this.#call('hear', chunk); }
  heardScores() { return this.#call('heardScores'); }
  endStream() { return this.#call('endStream'); }

  // Listen to a MediaStream, or a node of an AudioContext, until `stop` of what this gives is called.
  async listen(source, onEvent, onError = error => { throw error; }) {
    let waiting = 0, lost = 0, ended = false;
    await this.startStream();
    const take = async chunk => {
      if (ended) return;
      if (waiting >= MOST_WAITING) { lost += chunk.length; return; }
      waiting++;
      const missing = lost;
      lost = 0;
      try {
        if (missing) await this.gap(missing);
        for (const event of await this.hear(chunk)) if (!ended) onEvent(event);
      } catch (error) {
        if (!ended) onError(error);
      } finally {
        waiting--;
      }
    };
    const release = await capture(source, take);
    return {stop() { ended = true; return release(); }};
  }

  // Let go of the thread and all that is in it.
  close() { this.#close(); }
}

// So many seconds of a MediaStream, or of a node of an AudioContext, as samples at 16 kHz.
export async function record(source, seconds) {
  const samples = new Int16Array(Math.round(seconds * RATE));
  let release, filled = 0;
  await new Promise((yes, no) => {
    release = capture(source, chunk => {
      samples.set(chunk.subarray(0, samples.length - filled), filled);
      filled = Math.min(filled + chunk.length, samples.length);
      if (filled === samples.length) yes();
    });
    release.catch(no);
  });
  await (await release)();
  return samples;
}

async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (ArrayBuffer.isView(source) || source instanceof ArrayBuffer) return WebAssembly.compile(source);
  const answer = await fetch(source);
  if (!answer.ok) throw new Error(`${source} could not be loaded (${answer.status})`);
  // Not as a stream: plain file servers do not all know what kind of file this is.
  return WebAssembly.compile(await answer.arrayBuffer());
}

async function inThisThread(module) {
  const core = await Core.open(module);
  return [async (method, ...given) => core[method](...given), () => {}];
}

function inWorker() {
  const worker = new Worker(new URL('./worker.js', import.meta.url), {type: 'module'});
  const open = new Map();
  let calls = 0;
  const fail = error => {
    open.forEach(({no}) => no(error));
    open.clear();
  };
  worker.onmessage = ({data: {id, value, error}}) => {
    const {yes, no} = open.get(id);
    open.delete(id);
    if (!error) yes(value);
    else no(error.code ? new TapwordError(error.code, error.message) : Object.assign(new Error(error.message), {name: error.name}));
  };
  worker.onerror = event => fail(new Error(event.message || 'worker.js could not be loaded'));
  const call = (method, ...given) => new Promise((yes, no) => {
    const id = calls++;
    open.set(id, {yes, no});
    worker.postMessage({id, method, given});
  });
  return [call, () => { worker.terminate(); fail(new Error('the spotter was closed')); }];
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
  const context = lent ? source.context : await contextOf(source);
  await context.audioWorklet.addModule(new URL('./capture.js', import.meta.url));
  const from = lent ? source : context.createMediaStreamSource(source);
  const node = new AudioWorkletNode(context, 'capture', {numberOfOutputs: 0});
  node.port.onmessage = ({data}) => onChunk(data);
  from.connect(node);
  if (!lent) await context.resume();
  return async () => {
    node.port.onmessage = null;
    from.disconnect(node);
    if (!lent) await context.close();
  };
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
