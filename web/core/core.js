// The spotter in the thread that calls it: a thin coat over the functions of core.c.

// Stands before a word's name where its negatives are meant, as TAPWORD_NOT.
const NOT = '¬';
// As samples of 16 bits are floats everywhere in tapword.
const SCALE = 1 / 32768;

const encoder = new TextEncoder(), decoder = new TextDecoder();

// What went wrong: `code` is the name that the C code has for it, the message a plain sentence.
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

  // Every word: how many takes it was taught, how many sounds as not it, how readily it is heard, and
  // the score from which it counts as said.
  words() {
    const names = this.#names();
    return names.map((word, k) => {
      const negatives = names.indexOf(NOT + word);
      return {
        word, count: this.#c.row_count(k), negatives: negatives < 0 ? 0 : this.#c.row_count(negatives),
        sensitivity: this.#c.row_sensitivity(k), threshold: this.#c.row_threshold(k),
      };
    }).filter(({word}) => !word.startsWith(NOT));
  }

  // How readily words that are still to come will be heard.
  sensitivity() { return this.#c.sensitivity(); }

  // From 0 to 1: hear a word more readily or less; all of them where it is null.
  setSensitivity(word, value) {
    if (word !== null) this.#write(0, spelled(word));
    this.#checked(this.#c.set_sensitivity(word === null ? 1 : 0, value));
  }

  // Learn a clip of a word, known or new.
  learn(audio, word) {
    this.#write(0, spelled(word));
    this.#checked(this.#c.teach(this.#give(audio)));
  }

  // Learn that a clip is none of the words; gives the word that it was nearest to, or null.
  reject(audio) {
    const row = this.#c.reject(this.#give(audio));
    return this.#isNone(row) ? null : this.#name(this.#checked(row));
  }

  // The word that is said in a clip, null where it is none; where `closed`, it is always one. The score is
  // null where no word is known.
  predict(audio, {closed = false} = {}) {
    const row = this.#c.predict(this.#give(audio), closed ? 0 : 1);
    const word = this.#isNone(row) ? null : this.#name(this.#checked(row)), score = this.#c.predict_score();
    return {word, score: Number.isNaN(score) ? null : score};
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

  // Call a word and its negatives otherwise, by a name that no other word has.
  rename(word, now) {
    this.#write(0, spelled(word));
    this.#write(1, spelled(now));
    this.#checked(this.#c.rename());
  }

  // Begin a stream anew.
  startStream() { this.#c.listen_start(); }

  // So many samples of the stream were lost.
  gap(samples) { this.#c.listen_gap(samples); }

  // Word -> its score in what `hear` scored last; null where that was nothing.
  heardScores() {
    const scores = this.#scores();
    return Object.values(scores).some(Number.isNaN) ? null : scores;
  }

  // Take the next samples of the stream, any number of them; gives the events.
  hear(audio) {
    const most = this.#c.room_samples(), events = [];
    for (let at = 0; at < audio.length; at += most) {
      const n = this.#give(audio.subarray(at, at + most));
      events.push(...this.#events(this.#c.listen(n)));
    }
    return events;
  }

  // The stream is over: gives what was still to come of it.
  endStream() { return this.#events(this.#c.listen_end()); }

  // What was taught, as bytes that a device, Python (tapword import) and `load` read.
  save() {
    const n = this.#checked(this.#c.save());
    return new Uint8Array(this.#c.memory.buffer, this.#c.room_state(), n).slice();
  }

  // Take over what was saved, in the place of all words here; those stay where it cannot be read.
  load(bytes) {
    // What is cut short, since there is no room for it, is refused as damaged.
    const some = bytes.subarray(0, this.#c.room_state_bytes());
    new Uint8Array(this.#c.memory.buffer, this.#c.room_state(), some.length).set(some);
    this.#checked(this.#c.load(some.length));
  }

  #events(n) {
    return Array.from({length: this.#checked(n)}, (_, i) => ({
      word: this.#name(this.#c.event_word(i)), score: this.#c.event_score(i),
      start: this.#c.event_start(i), end: this.#c.event_end(i),
    }));
  }

  #names() { return Array.from({length: this.#c.rows()}, (_, k) => this.#name(k)); }

  #scores() {
    return Object.fromEntries(this.#names().map((word, k) => [word, this.#c.row_score(k)]).filter(([word]) => !word.startsWith(NOT)));
  }

  #isNone(row) { return row < 0 && this.#code(row) === 'TAPWORD_UNKNOWN'; }

  #name(row) { return this.#read(this.#c.row_name(row)); }

  // Put samples into their room; gives how many.
  #give(audio) {
    const most = this.#c.room_samples();
    if (!(audio instanceof Float32Array || audio instanceof Int16Array)) {
      throw new TypeError('sound must be a Float32Array or an Int16Array, 16,000 samples a second');
    }
    // One more than there is room for is refused by its number.
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
    // Cut at one byte more than fits: too long, and refused as that.
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

// One spelling for names that look the same, as in Python; a name cannot pass for a negative's.
function spelled(word) {
  const cleaned = String(word).normalize('NFC').trim();
  if (!cleaned || cleaned.startsWith(NOT) || /[\p{C}\p{Zl}\p{Zp}]/u.test(cleaned)) {
    throw new TapwordError('TAPWORD_BAD_WORD', 'A word must be printable characters, and not empty.');
  }
  return cleaned;
}
