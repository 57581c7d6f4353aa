// One spoken word in a recording: find it, judge it, and say live when it is over. What
// tapword/audio/endpoint.py does, with its settings; a test holds the two to each other.

import settings from './settings.js';

const SET = settings.endpoint, RATE = 16000;
const FRAME = SET.frame_ms * RATE / 1000, HOP = SET.hop_ms * RATE / 1000, SIZE = 2 * FRAME;

const decibels = power => 10 * Math.log10(power + 1e-10);
const power = level => 10 ** (level / 10);
const ms = frames => frames * SET.hop_ms;
const sum = (values, start = 0, end = values.length) => {
  let all = 0;
  for (let i = start; i < end; i++) all += values[i];
  return all;
};

// Fourier transform of SIZE complex numbers, in place.
const cosines = Float64Array.from({length: SIZE / 2}, (_, k) => Math.cos(2 * Math.PI * k / SIZE));
const sines = Float64Array.from({length: SIZE / 2}, (_, k) => Math.sin(2 * Math.PI * k / SIZE));
// Numbers whose bits are read from the other end.
const mirrored = Uint16Array.from({length: SIZE}, (_, i) =>
  parseInt(i.toString(2).padStart(Math.log2(SIZE), '0').split('').reverse().join(''), 2));

function transform(re, im) {
  for (let i = 0; i < SIZE; i++) {
    const j = mirrored[i];
    if (i < j) {
      const real = re[i], imaginary = im[i];
      re[i] = re[j];
      im[i] = im[j];
      re[j] = real;
      im[j] = imaginary;
    }
  }
  for (let half = 1; half < SIZE; half *= 2) {
    const step = SIZE / (2 * half);
    for (let first = 0; first < SIZE; first += 2 * half) {
      for (let k = 0; k < half; k++) {
        const a = first + k, b = a + half, c = cosines[k * step], s = sines[k * step];
        const real = re[b] * c + im[b] * s, imaginary = im[b] * c - re[b] * s;
        re[b] = re[a] - real;
        im[b] = im[a] - imaginary;
        re[a] += real;
        im[a] += imaginary;
      }
    }
  }
}

// Powers of a frame's frequencies, of which `autocorrelation` is made in turn.
function spectrum(frame) {
  const re = new Float64Array(SIZE), im = new Float64Array(SIZE);
  re.set(frame);
  transform(re, im);
  for (let k = 0; k < SIZE; k++) re[k] = re[k] * re[k] + im[k] * im[k];
  return re;
}

// Up to a factor: only ratios of it are asked for.
function autocorrelation(powers) {
  const re = Float64Array.from(powers);
  transform(re, new Float64Array(SIZE));
  return re;
}

const hann = Float64Array.from({length: FRAME}, (_, i) => 0.5 - 0.5 * Math.cos(2 * Math.PI * i / (FRAME - 1)));
const hannPower = sum(hann.map(value => value * value));
const taper = autocorrelation(spectrum(hann));
const LAGS = {first: Math.floor(RATE / SET.pitch_hz[1]), end: Math.floor(RATE / SET.pitch_hz[0])};
const inBand = Float64Array.from({length: SIZE}, (_, k) => {
  const hz = Math.min(k, SIZE - k) * RATE / SIZE;
  return hz >= SET.band_hz[0] && hz <= SET.band_hz[1] ? 1 : 0;
});

// Level in dB of full scale and voicing of the frame that begins at a sample.
function measure(audio, start) {
  const frame = new Float64Array(FRAME);
  for (let i = 0; i < FRAME; i++) frame[i] = hann[i] * audio[start + i];
  const powers = spectrum(frame);
  for (let k = 0; k < SIZE; k++) powers[k] *= inBand[k];
  const level = decibels(sum(powers, 0, FRAME + 1) / (FRAME * hannPower));
  const repeats = autocorrelation(powers);
  // As numpy's inverse gives it, so that silence is told from sound alike.
  const loudest = Math.max(repeats[0] / SIZE, 1e-12);
  let voicing = -Infinity;
  for (let lag = LAGS.first; lag < LAGS.end; lag++) {
    voicing = Math.max(voicing, repeats[lag] / SIZE / loudest * taper[0] / taper[lag]);
  }
  return {level, voicing};
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b), at = share * (sorted.length - 1), low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

// Frames [start, end) of each stretch of speech: clicks dropped, gaps in a word bridged.
function speech(levels, voicing) {
  if (!levels.length) return [];
  const most = (start = 0, end = levels.length) => levels.slice(start, end).reduce((a, b) => Math.max(a, b));
  const background = quantile(levels, SET.background_share);
  const threshold = Math.max(background + SET.offset_db, most() - SET.range_db);
  const spans = [];
  for (let start = 0, end; start < levels.length; start = end + 1) {
    end = start;
    while (end < levels.length && levels[end] > threshold) end++;
    if (ms(end - start) < SET.click_ms || most(start, end) < background + SET.onset_db) continue;
    const joins = spans.length && ms(start - spans.at(-1)[1]) <= SET.gap_ms;
    spans.push([joins ? spans.pop()[0] : start, end]);
  }
  const found = [];
  for (const [start, end] of spans) {
    if (ms(voicing.slice(start, end).filter(value => value > SET.voicing).length) < SET.voiced_ms) continue;
    const joins = found.length && ms(start - found.at(-1)[1]) <= SET.pause_ms;
    found.push([joins ? found.pop()[0] : start, end]);
  }
  return found;
}

// Listens to a recording as it is made, and says when its word is over.
export class Endpointer {
  audio = new Float32Array(0);
  state = 'waiting';
  #levels = [];
  #voicing = [];

  hear(chunk) {
    const all = new Float32Array(this.audio.length + chunk.length);
    all.set(this.audio);
    all.set(chunk, this.audio.length);
    this.audio = all;
    for (let at = this.#levels.length * HOP; at + FRAME <= all.length; at += HOP) {
      const {level, voicing} = measure(all, at);
      this.#levels.push(level);
      this.#voicing.push(voicing);
    }
    const last = speech(this.#levels, this.#voicing).at(-1), now_s = ms(this.#levels.length) / 1000;
    if (!last) this.state = now_s >= SET.wait_s ? 'nobody' : 'waiting';
    else {
      const [start_s, end_s] = last.map(edge => ms(edge) / 1000);
      const over = now_s - end_s >= SET.silence_s || end_s - start_s > SET.long_s + SET.silence_s;
      this.state = over || now_s >= SET.most_s ? 'over' : 'speaking';
    }
    return this.state;
  }

  // What was found: {problem, audio, start_s, end_s, snr_db}; problem is null where the take is good.
  take() {
    const {audio} = this, levels = this.#levels, spans = speech(levels, this.#voicing);
    if (!spans.length) {
      return {problem: 'no speech found: say the word aloud, and check the choice of microphone',
        audio: audio.slice(0, 0), start_s: 0, end_s: 0, snr_db: 0};
    }
    // Of several, the word is the one with the most energy.
    const powers = levels.map(power);
    const energies = spans.map(([start, end]) => sum(powers, start, end));
    const [start, end] = spans[energies.indexOf(Math.max(...energies))];
    const [loudest, second = 0] = [...energies].sort((a, b) => b - a);
    const twice = second > loudest * power(-SET.second_db);
    const level_db = decibels(sum(powers, start, end) / (end - start));
    const around = [...levels.slice(0, start), ...levels.slice(end)];
    const snr_db = around.length ? level_db - quantile(around, 0.5) : 0;
    // The window tapers a frame off: what it measures lies in its middle half.
    const first = start * HOP + FRAME / 4, last = (end - 1) * HOP + FRAME * 3 / 4;
    const margin = Math.round(SET.margin_ms / 1000 * RATE);
    const clipped = audio.slice(first, last).filter(sample => Math.abs(sample) >= SET.clipped).length / (last - first);
    const length_s = (last - first) / RATE;
    return {
      problem: problem({length_s, level_db, snr_db, clipped, twice, edge_s: Math.min(first, audio.length - last) / RATE}),
      audio: audio.slice(Math.max(0, first - margin), last + margin),
      start_s: first / RATE, end_s: last / RATE, snr_db,
    };
  }
}

export function examine(audio) {
  const endpointer = new Endpointer();
  endpointer.hear(audio);
  return endpointer.take();
}

function problem({length_s, level_db, snr_db, clipped, twice, edge_s}) {
  if (length_s > SET.long_s) {
    return `too long: ${length_s.toFixed(1)} s of speech; a word or phrase lasts at most ${SET.long_s} s, so say it once, then be silent`;
  }
  if (twice) return 'more than one word: say it once, without a long pause';
  if (clipped > SET.clipped_share) return "clipped: speak more softly, move back, or turn down the microphone's gain";
  if (edge_s < SET.edge_ms / 1000) return 'cut off: wait for the signal, say the word, then be silent for a moment';
  if (level_db < SET.quiet_db) return "too quiet: speak up, come closer, or turn up the microphone's gain";
  if (snr_db < SET.snr_db) return 'too quiet for the noise around you: come closer or find a quieter place';
  if (length_s < SET.short_s) return 'too short: say the whole word, as you would in a sentence';
  return null;
}
