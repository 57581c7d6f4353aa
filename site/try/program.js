// What the studio's program does for its page, done in the page: takes are recorded and judged, words
// taught and heard by the core, and every change is kept in the browser.

import {RATE, Tapword} from './core/index.js';
import {Endpointer, examine} from './endpoint.js';
import {History} from './history.js';
import settings from './settings.js';
import * as store from './store.js';
import {sentence, texts} from './texts.js';

// Chunks that may wait for a machine that is busy: two seconds.
const TIDY_MS = 5000, MOST_WAITING = 25;
// A score is about a window of sound: it is shown for so long, unless another comes.
const HELD_S = 0.5;
const {limits} = settings;
const NOTHING = new Int16Array(0);

const floats = samples => Float32Array.from(samples, sample => sample / 32768);
const whole = samples => Int16Array.from(samples, sample => Math.max(-32768, Math.min(32767, Math.round(sample * 32768))));
const spelled = word => word.trim().normalize('NFC');
const rounded = (value, digits) => Number(value.toFixed(digits));
const hasSpeech = take => take.end_s > take.start_s;

export class Program {
  #spotter = null;
  #history = null;
  #emptyBytes = 0;
  // Whether the browser keeps the words.
  #stored = true;
  // What the browser held and this version of the core cannot read: {bytes, reason, replaced, saved}.
  #unread = null;
  #started = null;
  #turn = Promise.resolve();
  #tell;
  // The stream that is listened to: its last seconds, how many samples it had, and its events' clips.
  #listening = false;
  #lost = 0;
  #scored = {scores: {}, until: 0};
  #waiting = 0;
  #recent = NOTHING;
  #heard = 0;
  #began = 0;
  #events = 0;
  #clips = new Map();
  // The take that is being recorded or was last.
  #endpointer = null;
  #number = 0;
  #take = null;

  // `tell` is given every message for the page.
  constructor(tell) { this.#tell = tell; }

  // Once, however often it is asked for.
  start() { return this.#started ??= this.#start(); }

  async #start() {
    this.#spotter = await Tapword.load();
    this.#history = new History(this.#spotter);
    this.#emptyBytes = (await this.#spotter.save()).length;
    await this.#read();
    store.onChange(() => this.#one(async () => { this.#history.clear(); await this.#read(); await this.news(); }));
    setInterval(() => this.#tidy(), TIDY_MS);
  }

  // Take over what the browser holds.
  async #read() {
    let bytes;
    try {
      bytes = await store.read();
      this.#stored = true;
    } catch {
      this.#stored = false;
      return;
    }
    try {
      if (bytes) await this.#spotter.load(bytes);
      if (this.#unread) this.#unread.replaced = true;
    } catch (error) {
      const reason = texts.refusals[error.code] ?? sentence(error.message);
      this.#unread = {bytes, reason, replaced: false, saved: false};
    }
  }

  // Words that could not be read are told of until they were saved.
  get #offered() { return this.#unread !== null && !this.#unread.saved; }

  get #problem() {
    const problems = this.#stored ? [] : [texts.notStored];
    if (this.#offered) problems.push(this.#unread.replaced ? texts.replaced : texts.cannotUse(this.#unread.reason));
    return problems.join(' ') || null;
  }

  // One after the other, as the calls come.
  #one(job) {
    const mine = this.#turn.then(job);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  // Change the model, keep it, and tell the page.
  #change(job) {
    return this.#one(async () => {
      const value = await job();
      try {
        await store.write(await this.#spotter.save());
        this.#stored = true;
        if (this.#unread) this.#unread.replaced = true;
      } catch {
        this.#stored = false;
      }
      await this.news();
      this.#tell({type: 'thresholds', thresholds: await this.#thresholds()});
      return value;
    });
  }

  async news() {
    const words = await this.#spotter.words(), bytes = (await this.#spotter.save()).length;
    const each = Math.round((bytes - this.#emptyBytes) / Math.max(1, words.length));
    this.#tell({
      type: 'model', file: texts.file, words: words.map(word => ({...word, sensitivity: rounded(word.sensitivity, 3)})),
      state_bytes: bytes, bytes_per_word: each, sensitivity: rounded(await this.#spotter.sensitivity(), 3),
      keeps_vectors: false, has_thresholds: true, mergeable: false, trace: 'differences',
      revision: words.length ? '' : null, problem: this.#problem, unread: this.#offered,
      history: {takes: this.#history.takes(), undo: this.#history.last},
    });
  }

  // What the page asks for.

  learn(sound, word, anyway = false) {
    const take = examine(floats(sound));
    if (take.problem !== null && !(anyway && hasSpeech(take))) throw new Error(take.problem);
    return this.#learn(take.audio, word);
  }

  async #learn(audio, named) {
    const word = spelled(named);
    const take = await this.#change(() => this.#history.make({
      kind: 'teach', word, make: () => this.#spotter.learn(audio, word),
      takes: (takes, id) => [...takes, {id, word, negative: false}],
    }));
    return {take, warnings: []};
  }

  async #reject(audio) {
    // The word that it was taken for, which the core says.
    let word = null;
    const take = await this.#change(() => this.#history.make({
      kind: 'reject', get word() { return word; }, make: async () => { word = await this.#spotter.reject(audio); },
      takes: (takes, id) => [...takes, {id, word, negative: true}],
    }));
    return {take, warnings: []};
  }

  forget(word) {
    return this.#change(() => this.#history.make({
      kind: 'forget', word, make: () => this.#spotter.forget(word),
      takes: takes => takes.filter(take => take.word !== word),
    }));
  }

  rename(word, named) {
    const now = spelled(named);
    return this.#change(() => this.#history.make({
      kind: 'rename', word, new: now, make: () => this.#spotter.rename(word, now),
      takes: takes => takes.map(take => take.word === word ? {...take, word: now} : take),
    }));
  }

  sensitivity(word, value) {
    return this.#change(() => this.#history.make({
      kind: 'sensitivity', word, make: () => this.#spotter.setSensitivity(word, value), takes: takes => takes,
    }));
  }

  remove(id) { return this.#change(() => this.#history.remove(id)); }

  undo() { return this.#change(() => this.#history.undo()); }

  open(bytes) {
    return this.#change(async () => {
      await this.#spotter.load(bytes);
      this.#history.clear();
    });
  }

  // The words as a file; or the words that could not be read, as they are.
  file(unread) { return unread ? this.#unread.bytes : this.#one(() => this.#spotter.save()); }

  // The words that could not be read are in a file now.
  saved() {
    this.#unread.saved = true;
    return this.news();
  }

  // Listening.

  async listen() {
    this.stop();
    this.#began = this.#heard;
    this.#lost = 0;
    this.#listening = true;
    return this.#one(async () => {
      await this.#spotter.startStream();
      return {thresholds: await this.#thresholds()};
    });
  }

  async #thresholds() {
    return Object.fromEntries((await this.#spotter.words()).map(({word, threshold}) => [word, threshold]));
  }

  stop() {
    this.#listening = false;
    this.#recent = NOTHING;
  }

  // The microphone's next chunk, for whoever wants it.
  sound(chunk) {
    if (this.#endpointer) this.#takeUp(chunk);
    if (this.#listening) this.#hear(chunk);
  }

  async #hear(chunk) {
    // A machine that cannot keep up loses sound rather than falling behind.
    if (this.#waiting >= MOST_WAITING) {
      this.#lost += chunk.length;
      this.#heard += chunk.length;
      this.#recent = NOTHING;
      return;
    }
    const joined = new Int16Array(this.#recent.length + chunk.length);
    joined.set(this.#recent);
    joined.set(chunk, this.#recent.length);
    this.#recent = joined.slice(-Math.round(limits.recent_s * RATE));
    const lost = this.#lost;
    this.#lost = 0;
    this.#heard += chunk.length;
    const heard = this.#heard;
    this.#waiting++;
    try {
      await this.#one(async () => {
        if (!this.#listening) return;
        if (lost) await this.#spotter.gap(lost);
        for (const event of await this.#spotter.hear(chunk)) this.#announce(event);
        const scores = await this.#spotter.heardScores();
        if (scores) this.#scored = {scores, until: heard + HELD_S * RATE};
      });
      this.#tell({type: 'scores', time_s: heard / RATE, scores: heard < this.#scored.until ? this.#scored.scores : {}});
    } catch (error) {
      this.#tell({type: 'listen', error: error.message});
    } finally {
      this.#waiting--;
    }
  }

  #announce({word, score, start, end}) {
    const id = ++this.#events, from_s = this.#began / RATE, since_s = (this.#heard - this.#recent.length) / RATE;
    const start_s = from_s + start, end_s = from_s + end;
    const place = at_s => Math.max(0, Math.round((at_s - since_s) * RATE));
    const sound = this.#recent.slice(place(start_s - limits.around_s), place(end_s + limits.around_s));
    this.#clips.set(id, {sound, at_ms: performance.now()});
    while (this.#clips.size > limits.events) this.#clips.delete(this.#clips.keys().next().value);
    this.#tell({type: 'event', id, word, score, start_s, end_s});
  }

  hear({id}) { return {sound: whole(this.#spoken(id))}; }

  async correct({id, word}) {
    const spoken = this.#spoken(id);
    const outcome = word === null ? await this.#reject(spoken) : await this.#learn(spoken, word);
    this.#clips.delete(id);
    return {...outcome, sound: whole(spoken)};
  }

  async missed({word}) {
    const take = examine(floats(this.#recent));
    if (!hasSpeech(take)) throw new Error(`no speech was heard in the last ${limits.recent_s} s; say it again`);
    const outcome = await this.#learn(take.audio, word);
    this.#recent = NOTHING;
    return {...outcome, sound: whole(take.audio)};
  }

  // Clip of an event, cut to the speech where there is any.
  #spoken(id) {
    const kept = this.#clips.get(id);
    if (!kept) {
      throw new Error('the sound of this event is gone already (it is kept for two minutes at most); say the word again and correct that');
    }
    const all = floats(kept.sound), take = examine(all);
    return hasSpeech(take) ? take.audio : all;
  }

  // Recording a take.

  record({id}) {
    this.cancel();
    this.#number = id;
    this.#endpointer = new Endpointer();
  }

  #takeUp(chunk) {
    const before = this.#endpointer.state, state = this.#endpointer.hear(floats(chunk));
    if (state === 'over' || state === 'nobody') this.#tell(this.finish());
    else if (state !== before) this.#tell({type: 'recording', id: this.#number, state});
  }

  finish() {
    if (!this.#endpointer) return {};
    const take = this.#endpointer.take(), {length} = this.#endpointer.audio;
    this.#endpointer = null;
    if (hasSpeech(take)) this.#take = {id: this.#number, audio: take.audio};
    return {
      type: 'take', id: this.#number, problem: take.problem, speech: hasSpeech(take), length_s: length / RATE,
      start_s: rounded(take.start_s, 3), end_s: rounded(take.end_s, 3), snr_db: rounded(take.snr_db, 1),
    };
  }

  cancel() { this.#endpointer = this.#take = null; }

  async keep({id, word, careful}) {
    if (this.#take?.id !== id) throw new Error('the sound of this take is gone already; record it again');
    const {audio} = this.#take;
    const doubts = careful ? await this.#doubts(audio, word) : [];
    if (doubts.length) return {take: null, warnings: doubts};
    this.#take = null;
    return this.#learn(audio, word);
  }

  // Why a take may be none of its word.
  async #doubts(audio, word) {
    const {word: heard} = await this.#spotter.predict(audio);
    if (heard !== null && heard !== word) return [`this take sounds like "${heard}"`];
    const known = (await this.#spotter.words()).find(other => other.word === word);
    const lacking = known ? known.threshold - (await this.#spotter.scores(audio))[word] : 0;
    return lacking > settings.unlike ? [`this take sounds unlike "${word}" so far`] : [];
  }

  #tidy() {
    const oldest = performance.now() - limits.keep_s * 1000, before = this.#clips.size;
    for (const [id, {at_ms}] of this.#clips) if (at_ms < oldest) this.#clips.delete(id);
    if (before !== this.#clips.size) this.#tell({type: 'correctable', events: [...this.#clips.keys()]});
  }
}
