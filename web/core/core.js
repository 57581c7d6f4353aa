// The spotter in the thread that calls it, over the functions of core.c.

// Begins the name of a word's negatives, as TAPWORD_NEGATIVE.
const NEGATIVE = '¬';
// States of a recording, in the order of TAPWORD_ENDPOINT_...
const STATES = ['waiting', 'speaking', 'over', 'nobody'];
// Severities of issues, as in Python's TeachSession; all others are doubts.
const SEVERITIES = {no_speech: 'refuse', more_than_one_word: 'note', long_pause: 'note', close_word: 'note'};
const RATE = 16000;
// Samples of 16 bits as floats.
const SCALE = 1 / 32768;

const encoder = new TextEncoder(), decoder = new TextDecoder();

// `code` is the name of the error in C, the message a plain sentence.
export class TapwordError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'TapwordError';
    this.code = code;
  }
}

export class Core {
  #c;

  constructor(instance) {
    this.#c = instance.exports;
    this.#c.start();
  }

  // From a compiled module, or the bytes of one.
  static async open(source) {
    const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
    return new Core(await WebAssembly.instantiate(module));
  }

  // Every word with its number of takes and of negatives, its sensitivity and its threshold.
  words() {
    const names = this.#names();
    return names.map((word, k) => {
      const negatives = names.indexOf(NEGATIVE + word);
      return {
        word, count: this.#c.row_count(k), negatives: negatives < 0 ? 0 : this.#c.row_count(negatives),
        sensitivity: this.#c.row_sensitivity(k), threshold: this.#c.row_threshold(k),
      };
    }).filter(({word}) => !word.startsWith(NEGATIVE));
  }

  // Sensitivity of new words.
  sensitivity() { return this.#c.sensitivity(); }

  // Set the sensitivity of a word, from 0 to 1; with null, of all words and of new ones.
  setSensitivity(word, value) {
    if (word !== null) this.#write(0, spelled(word));
    this.#checked(this.#c.set_sensitivity(word === null ? 1 : 0, value));
  }

  // Learn a clip of a word, known or new; noise only with `anyway`.
  learn(audio, word, {anyway = false} = {}) {
    this.#write(0, spelled(word));
    this.#checked(this.#c.teach(this.#give(audio), anyway ? 1 : 0));
  }

  // Learn that a clip is none of the words; returns the nearest word, or null.
  reject(audio) {
    const row = this.#c.reject(this.#give(audio));
    return this.#isNone(row) ? null : this.#name(this.#checked(row));
  }

  // The word in a clip, or null; with `closed`, always the nearest word. The score of the nearest word, and
  // how sure it makes us, from 0 to 100: a word counts as said from 50 on. Both are null if no word is known.
  predict(audio, {closed = false} = {}) {
    const row = this.#c.predict(this.#give(audio), closed ? 0 : 1);
    const word = this.#isNone(row) ? null : this.#name(this.#checked(row)), score = this.#c.predict_score();
    if (Number.isNaN(score)) return {word, score: null, confidence: null};
    const names = this.#names(), scores = this.#scores();
    const nearest = Object.keys(scores).reduce((best, one) => scores[one] > scores[best] ? one : best);
    return {word, score, confidence: this.#c.row_confidence(names.indexOf(word ?? nearest))};
  }

  // Word -> its score in a clip.
  scores(audio) {
    this.predict(audio);
    return this.#scores();
  }

  forget(word) {
    this.#write(0, spelled(word));
    this.#checked(this.#c.forget());
  }

  // Rename a word and its negatives.
  rename(word, now) {
    this.#write(0, spelled(word));
    this.#write(1, spelled(now));
    this.#checked(this.#c.rename());
  }

  // Start a recording of one word.
  startRecording() { this.#c.record_start(); }

  // Push the next samples of the recording: 'waiting' for speech, 'speaking', 'over' or 'nobody'.
  pushRecording(audio) { return STATES[this.#checked(this.#c.record_push(this.#give(audio)))]; }

  // Find the one word in a recording: where it is, the take to teach, and what is wrong with it.
  examine(audio) {
    this.#checked(this.#c.examine(this.#give(audio)));
    const start_s = this.#c.take_first() / RATE, end_s = this.#c.take_last() / RATE;
    const code = this.#read(this.#c.take_issue());
    const params = code === 'too_long' ? {seconds: end_s - start_s, limit_s: this.#c.max_word_s()} : {};
    return {
      issue: code ? issue(code, params) : null, audio: audio.slice(this.#c.take_start(), this.#c.take_end()),
      start_s, end_s, level_db: this.#c.take_level_db(), snr_db: this.#c.take_snr_db(),
    };
  }

  // Find several takes of one word in a recording of at most 60 s; empty if there are none.
  findTakes(audio) {
    return Array.from({length: this.#checked(this.#c.find_takes(this.#give(audio)))}, (_, i) => {
      const first = this.#c.sound_first(i), start_s = this.#c.sound_start(i) / RATE;
      return {audio: audio.slice(first, this.#c.sound_end(i)), first, start_s, is_take: this.#c.sound_is_take(i) === 1};
    });
  }

  // Check a clip of a word before it is taught; `kind` is 'take' or 'file'. Returns issues.
  check(audio, word, kind = 'take') {
    const cleaned = spelled(word);
    this.#write(0, cleaned);
    return this.#issues(this.#c.check(this.#give(audio), kind === 'take' ? 1 : 0), cleaned);
  }

  // Compare the clip that was checked last, and those accepted before it, with other words.
  accept(word) {
    return this.#issues(this.#c.lesson_add(), spelled(word)).map(found => ({...found, severity: 'note'}));
  }

  // Start a stream.
  startStream() { this.#c.stream_start(); }

  // Report that samples of the stream were lost.
  gap(samples) { this.#c.stream_gap(samples); }

  // Word -> its score in the last `push`; null if nothing was scored.
  streamScores() {
    const scores = this.#scores();
    return Object.values(scores).some(Number.isNaN) ? null : scores;
  }

  // Push the next samples of the stream, any number of them; returns events.
  push(audio) {
    const most = this.#c.room_samples(), events = [];
    for (let at = 0; at < audio.length; at += most) {
      const n = this.#give(audio.subarray(at, at + most));
      events.push(...this.#events(this.#c.stream_push(n)));
    }
    return events;
  }

  // End the stream; returns its last events.
  flush() { return this.#events(this.#c.stream_flush()); }

  // Save what was learned, for `load`, a device and `tapword import`.
  save() {
    const n = this.#checked(this.#c.save());
    return new Uint8Array(this.#c.memory.buffer, this.#c.room_state(), n).slice();
  }

  // Replace all words by a saved state; nothing changes if it cannot be read.
  load(bytes) {
    // A state that is too large is cut short, and refused as damaged.
    const some = bytes.subarray(0, this.#c.room_state_bytes());
    new Uint8Array(this.#c.memory.buffer, this.#c.room_state(), some.length).set(some);
    this.#checked(this.#c.load(some.length));
  }

  #events(n) {
    return Array.from({length: this.#checked(n)}, (_, i) => ({
      word: this.#name(this.#c.event_word(i)), score: this.#c.event_score(i), confidence: this.#c.event_confidence(i),
      start: this.#c.event_start(i), end: this.#c.event_end(i),
    }));
  }

  #issues(count, word) {
    return Array.from({length: this.#checked(count)}, (_, i) => {
      const code = this.#read(this.#c.issue_name(i)), other = this.#c.issue_other(i);
      if (code === 'unlike') return issue(code, {word});
      return issue(code, other < 0 ? {} : {word, other: this.#name(other)});
    });
  }

  #names() { return Array.from({length: this.#c.rows()}, (_, k) => this.#name(k)); }

  #scores() {
    return Object.fromEntries(this.#names().map((word, k) => [word, this.#c.row_score(k)]).filter(([word]) => !word.startsWith(NEGATIVE)));
  }

  #isNone(row) { return row < 0 && this.#code(row) === 'TAPWORD_UNKNOWN'; }

  #name(row) { return this.#read(this.#c.row_name(row)); }

  // Copy samples to the core; returns how many.
  #give(audio) {
    const most = this.#c.room_samples();
    if (!(audio instanceof Float32Array || audio instanceof Int16Array)) {
      throw new TypeError('sound must be a Float32Array or an Int16Array, 16,000 samples a second');
    }
    // The core refuses one more than there is room for.
    const n = Math.min(audio.length, most + 1);
    const room = new Float32Array(this.#c.memory.buffer, this.#c.room_audio(), most);
    const samples = audio.subarray(0, Math.min(n, most));
    if (audio instanceof Int16Array) samples.forEach((sample, i) => { room[i] = sample * SCALE; });
    else room.set(samples);
    return n;
  }

  #write(which, name) {
    const most = this.#c.room_bytes(), bytes = encoder.encode(name).subarray(0, most);
    const room = new Uint8Array(this.#c.memory.buffer, this.#c.room_text(which), most + 1);
    // A name that is too long is cut one byte after the limit, and refused.
    room.set(bytes);
    room[bytes.length] = 0;
  }

  #read(pointer) {
    const bytes = new Uint8Array(this.#c.memory.buffer, pointer);
    return decoder.decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  #checked(result) {
    if (result < 0) throw this.#error(result);
    return result;
  }

  #code(result) { return this.#read(this.#c.error(result)).split(': ', 1)[0]; }

  #error(result) {
    const text = this.#read(this.#c.error(result)), code = this.#code(result);
    return new TapwordError(code, text.slice(code.length + 2));
  }
}

// One spelling for names that look the same, as in Python.
function spelled(word) {
  const cleaned = String(word).normalize('NFC').trim();
  if (!cleaned || cleaned.startsWith(NEGATIVE) || /[\p{C}\p{Zl}\p{Zp}]/u.test(cleaned)) {
    throw new TapwordError('TAPWORD_BAD_WORD', 'A word must be printable characters, and not empty.');
  }
  return cleaned;
}

function issue(code, params) { return {code, severity: SEVERITIES[code] ?? 'doubt', params}; }
