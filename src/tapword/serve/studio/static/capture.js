// An AudioWorklet: microphone in, chunks of 80 ms at 16 kHz and 16 bit out.

const RATE = 16000, CHUNK = 1280, CROSSINGS = 12, STEPS = 512;

// Band-limited resampling by a windowed sinc, interpolated from a table.
class Resampler {
  constructor(from, to) {
    this.step = from / to;
    this.cut = Math.min(1, to / from) * 0.95;
    this.half = Math.ceil(CROSSINGS / this.cut);
    this.kernel = new Float32Array(this.half * STEPS + 2);
    for (let i = 0; i <= this.half * STEPS; i++) {
      const x = i / STEPS, at = Math.PI * this.cut * x;
      const window = 0.5 + 0.5 * Math.cos(Math.PI * Math.min(1, x / this.half));
      this.kernel[i] = this.cut * (at ? Math.sin(at) / at : 1) * window;
    }
    this.samples = new Float32Array(this.half);
    this.at = this.half;
  }

  push(input, give) {
    const all = new Float32Array(this.samples.length + input.length);
    all.set(this.samples);
    all.set(input, this.samples.length);
    for (; this.at + this.half < all.length; this.at += this.step) {
      const first = Math.ceil(this.at - this.half), last = Math.floor(this.at + this.half);
      let sum = 0;
      for (let k = Math.max(0, first); k <= last; k++) {
        const place = Math.abs(this.at - k) * STEPS, low = Math.floor(place), rest = place - low;
        sum += all[k] * (this.kernel[low] * (1 - rest) + this.kernel[low + 1] * rest);
      }
      give(sum);
    }
    const used = Math.max(0, Math.floor(this.at) - this.half);
    this.samples = all.slice(used);
    this.at -= used;
  }
}

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.chunk = new Int16Array(CHUNK);
    this.filled = 0;
    this.resampler = sampleRate === RATE ? null : new Resampler(sampleRate, RATE);
    this.give = this.give.bind(this);
  }

  give(value) {
    this.chunk[this.filled++] = Math.max(-32768, Math.min(32767, Math.round(value * 32768)));
    if (this.filled === CHUNK) {
      this.port.postMessage(this.chunk, [this.chunk.buffer]);
      this.chunk = new Int16Array(CHUNK);
      this.filled = 0;
    }
  }

  process([input]) {
    if (!input.length) return true;
    let samples = input[0];
    if (input.length > 1) {
      samples = Float32Array.from(samples, (_, i) =>
        input.reduce((sum, channel) => sum + channel[i], 0) / input.length);
    }
    if (this.resampler) this.resampler.push(samples, this.give);
    else samples.forEach(this.give);
    return true;
  }
}

registerProcessor('capture', Capture);
