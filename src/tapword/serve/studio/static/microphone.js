// One microphone for the whole page: open while it is used, and closed soon after.

import {texts} from './texts.js';

export const RATE = 16000;
const LINGER_MS = 20000;
// A browser may never start audio, as Firefox without loudspeakers.
const START_MS = 5000;

const users = new Set();
// Called with every chunk too, but they do not keep the microphone open.
const watchers = new Set();
let opened = null;
let closing = 0;
// Identifier of the chosen microphone; '' is the system's default.
let chosen = '';
// What opens other sources of sound, by the beginning of their identifiers.
const sources = new Map();

// Let microphones whose identifiers begin with `prefix` be opened by `opener`: it gets the rest of
// the identifier and a function for chunks, and resolves to a function that closes it.
export const addSource = (prefix, opener) => sources.set(prefix, opener);

export async function use(onChunk) {
  clearTimeout(closing);
  users.add(onChunk);
  try {
    opened ??= open();
    await opened;
  } catch (error) {
    users.delete(onChunk);
    opened = null;
    throw error;
  }
  return (linger = false) => {
    users.delete(onChunk);
    clearTimeout(closing);
    if (!users.size) closing = setTimeout(close, linger ? LINGER_MS : 0);
  };
}

export function watch(onChunk) { watchers.add(onChunk); }

async function close() {
  const was = opened;
  opened = null;
  if (was) (await was.catch(() => null))?.();
  dispatchEvent(new Event('microphone-closed'));
}

addEventListener('pagehide', close);

// Switch to another microphone; its users continue with it.
export async function choose(id) {
  chosen = id;
  await close();
  if (!users.size) return;
  try {
    opened = open();
    await opened;
  } catch (error) {
    opened = null;
    dispatchEvent(new Event('microphone-lost'));
    throw error;
  }
}

export async function list() {
  const devices = await navigator.mediaDevices?.enumerateDevices?.() ?? [];
  return devices.filter(({kind, deviceId}) => kind === 'audioinput' && deviceId !== 'default');
}

const give = chunk => [...users, ...watchers].forEach(user => user(chunk));

async function open() {
  const prefix = [...sources.keys()].find(one => chosen.startsWith(one));
  if (prefix) return sources.get(prefix)(chosen.slice(prefix.length), give);
  if (!window.isSecureContext) throw new Error(texts.insecure);
  if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode) throw new Error(texts.noWorklet);
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({
      audio: {channelCount: 1, echoCancellation: false, noiseSuppression: false,
        autoGainControl: false, ...(chosen ? {deviceId: {exact: chosen}} : {})},
    });
    dispatchEvent(new Event('microphone-open'));
  } catch (error) {
    throw new Error(explain(error), {cause: error});
  }
  // Where a browser does not resample a microphone, the worklet does.
  for (const options of [{sampleRate: RATE}, {}]) {
    let context;
    try {
      context = new AudioContext(options);
      await context.audioWorklet.addModule(new URL('./capture.js', import.meta.url));
      const source = context.createMediaStreamSource(stream);
      const node = new AudioWorkletNode(context, 'capture', {numberOfOutputs: 0});
      node.port.onmessage = ({data}) => give(data);
      source.connect(node);
      await started(context);
      stream.getTracks()[0].onended = () =>
        dispatchEvent(new CustomEvent('microphone-lost'));
      return () => {
        stream.getTracks().forEach(track => { track.onended = null; track.stop(); });
        return context.close();
      };
    } catch (error) {
      await context?.close().catch(() => null);
      if (error.silent || !('sampleRate' in options)) {
        stream.getTracks().forEach(track => track.stop());
        throw new Error(error.silent ? texts.notStarted : texts.unread(error.message), {cause: error});
      }
    }
  }
}

const started = context => Promise.race([
  context.resume(),
  new Promise((_, no) => setTimeout(() => no(Object.assign(new Error(), {silent: true})), START_MS)),
]);

function explain(error) {
  switch (error.name) {
    case 'NotAllowedError': case 'SecurityError': return texts.notAllowed;
    case 'NotFoundError': case 'OverconstrainedError': return texts.notFound;
    case 'NotReadableError': case 'AbortError': return texts.notReadable;
    default: return texts.unopened(error.message || error.name);
  }
}

export function level(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return 10 * Math.log10(sum / samples.length / 32768 ** 2 + 1e-10);
}
