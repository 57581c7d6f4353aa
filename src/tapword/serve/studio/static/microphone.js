// One microphone for the whole page: open while somebody uses it, and closed soon after.

export const RATE = 16000;
const LINGER_MS = 20000;

const users = new Set();
let opened = null;
let closing = 0;

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

async function close() {
  const was = opened;
  opened = null;
  if (was) (await was.catch(() => null))?.();
}

addEventListener('pagehide', close);

async function open() {
  if (!window.isSecureContext) {
    throw new Error('Browsers lend the microphone to secure pages only. Start the studio with ' +
      '--tls-self-signed, or open it on the machine it runs on. Files can be taught all the same.');
  }
  if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode) {
    throw new Error('This browser cannot record here (it lacks AudioWorklet). A current Firefox, ' +
      'Chrome, Edge or Safari can.');
  }
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({
      audio: {channelCount: 1, echoCancellation: false, noiseSuppression: false,
        autoGainControl: false},
    });
  } catch (error) {
    throw new Error(explain(error));
  }
  // Some browsers do not resample a microphone: there the worklet does.
  for (const options of [{sampleRate: RATE}, {}]) {
    let context;
    try {
      context = new AudioContext(options);
      await context.audioWorklet.addModule('/static/capture.js');
      const source = context.createMediaStreamSource(stream);
      const node = new AudioWorkletNode(context, 'capture', {numberOfOutputs: 0});
      node.port.onmessage = ({data}) => users.forEach(user => user(data));
      source.connect(node);
      await context.resume();
      stream.getTracks()[0].onended = () =>
        dispatchEvent(new CustomEvent('microphone-lost'));
      return () => {
        stream.getTracks().forEach(track => { track.onended = null; track.stop(); });
        return context.close();
      };
    } catch (error) {
      await context?.close().catch(() => null);
      if (!('sampleRate' in options)) {
        stream.getTracks().forEach(track => track.stop());
        throw new Error(`The microphone could not be read: ${error.message}`);
      }
    }
  }
}

function explain(error) {
  switch (error.name) {
    case 'NotAllowedError': case 'SecurityError':
      return 'The browser may not use the microphone. Allow it for this page (the icon beside ' +
        'the address), then try again.';
    case 'NotFoundError': case 'OverconstrainedError':
      return 'No microphone was found. Plug one in or choose one in the system’s settings, then ' +
        'try again. Recordings can be taught from files.';
    case 'NotReadableError': case 'AbortError':
      return 'The microphone is in use by another program. Close that, then try again.';
    default:
      return `The microphone could not be opened: ${error.message || error.name}`;
  }
}

export function level(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return 10 * Math.log10(sum / samples.length / 32768 ** 2 + 1e-10);
}
