// The studio's program in the page: it records and checks takes, teaches and detects words with the
// core, and stores every change in the browser.

import {RATE, Tapword} from './core/index.js';
import {History} from './history.js';
import settings from './settings.js';
import * as store from './store.js';
import {errorText, texts} from './texts.js';

// How often expired clips are dropped; and chunks that wait if the machine is busy, two seconds.
const EXPIRE_MS = 5000, MAX_WAITING = 25;
// A score is about a window of sound: it is shown for this long, unless another comes.
const SCORE_S = 0.5;
const {limits} = settings;
const NOTHING = new Int16Array(0);

const cleanWord = word => word.trim().normalize('NFC');
const rounded = (value, digits) => Number(value.toFixed(digits));
// What the page gets of a take: its audio, and how long the speech in it lasts.
const spoken = ({audio, start_s, end_s}) => ({audio, seconds: rounded(end_s - start_s, 3)});
const hasSpeech = take => take.end_s > take.start_s;
// An error with a code, for which the languages have a text.
const coded = (code, params = {}) => Object.assign(new Error(code), {code, params});

function join(chunks) {
  const all = new Int16Array(chunks.reduce((n, chunk) => n + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) { all.set(chunk, at); at += chunk.length; }
  return all;
}

// Codes of the page's errors for those of the core.
const CODES = {
  TAPWORD_FULL: 'model_full', TAPWORD_BAD_WORD: 'bad_word', TAPWORD_TAKEN: 'name_taken',
  TAPWORD_BAD_AUDIO: 'bad_audio', TAPWORD_TOO_LONG: 'phrase_too_long', TAPWORD_NOISE: 'noise_only',
  TAPWORD_BAD_STATE: 'damaged_file', TAPWORD_OTHER_STATE: 'other_model',
};

// An error as the studio sends one.
export const errorOf = ({message, code = null, params = {}}) => ({error: message, code: CODES[code] ?? code, params});

export class Program {
  #spotter = null;
  #history = null;
  #emptyBytes = 0;
  // Whether the browser stores the words.
  #stored = true;
  // Stored bytes that this version of the core cannot read: {bytes, reason, replaced, saved}.
  #unread = null;
  #started = null;
  #turn = Promise.resolve();
  #send;
  // The stream: its last seconds, how many samples it had, and the clips of its events.
  #listening = false;
  #lost = 0;
  #scored = {scores: {}, until: 0};
  #waiting = 0;
  #recent = NOTHING;
  #received = 0;
  #began = 0;
  #events = 0;
  #clips = new Map();
  // The take that is being recorded, and the last one that was.
  #recording = null;
  #take = null;
  // A doubtful missed word, until the page answers.
  #missed = null;

  // `send` is called with every message for the page.
  constructor(send) { this.#send = send; }

  // Start once, however often this is called.
  start() { return this.#started ??= this.#start(); }

  async #start() {
    this.#spotter = await Tapword.load();
    this.#history = new History(this.#spotter);
    this.#emptyBytes = (await this.#spotter.save()).length;
    await this.#read();
    store.onChange(() => this.#one(async () => { this.#history.clear(); await this.#read(); await this.sendModel(); }));
    setInterval(() => this.#expire(), EXPIRE_MS);
  }

  // Read what the browser stored.
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
      this.#unread = {bytes, reason: errorText(errorOf(error)), replaced: false, saved: false};
    }
  }

  // Unreadable words are offered until they are saved.
  get #offered() { return this.#unread !== null && !this.#unread.saved; }

  get #problem() {
    const problems = this.#stored ? [] : [texts.notStored];
    if (this.#offered) problems.push(this.#unread.replaced ? texts.replaced : texts.cannotUse(this.#unread.reason));
    return problems.join(' ') || null;
  }

  // Run jobs one after the other.
  #one(job) {
    const mine = this.#turn.then(job);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  // Change the model, store it, and send it to the page.
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
      await this.sendModel();
      this.#send({type: 'thresholds', thresholds: await this.#thresholds()});
      return value;
    });
  }

  async sendModel() {
    const words = await this.#spotter.words(), bytes = (await this.#spotter.save()).length;
    const each = Math.round((bytes - this.#emptyBytes) / Math.max(1, words.length));
    this.#send({
      type: 'model', file: texts.file, words: words.map(word => ({...word, sensitivity: rounded(word.sensitivity, 3)})),
      state_bytes: bytes, bytes_per_word: each, sensitivity: rounded(await this.#spotter.sensitivity(), 3),
      keeps_vectors: false, max_word_bytes: settings.max_word_bytes, has_thresholds: true, mergeable: false, trace: 'differences',
      revision: words.length ? '' : null, problem: this.#problem, unread: this.#offered,
      history: {takes: this.#history.takes(), undo: this.#history.last},
    });
  }

  // Requests of the page.

  // Of a take only the speech is taught, of a file each of its takes.
  async learn(audio, {word, kind = 'take', anyway = false}) {
    if (kind === 'file') return this.#learnFile(audio, word, anyway);
    const take = await this.#spotter.examine(audio), found = take.issue ? [take.issue] : [];
    if (!hasSpeech(take)) return {take: null, issues: found};
    return this.#learn(take.audio, word, {anyway, found});
  }

  async #learnFile(audio, word, anyway) {
    const found = await this.#spotter.findTakes(audio), limit_s = limits.clip_s, seconds = audio.length / RATE;
    if (!found.length) {
      if (seconds > limit_s) throw coded('file_too_long', {seconds: Math.round(seconds), limit_s});
      return this.#learn(audio, word, {kind: 'file', anyway});
    }
    const unlike = {take: null, issues: [{code: 'unlike', severity: 'doubt', params: {word}}]}, sounds = [];
    for (const {audio: clip, first, start_s, is_take} of found) {
      const outcome = is_take ? await this.#learn(clip, word, {kind: 'file', anyway}) : unlike;
      sounds.push({...outcome, first, samples: clip.length, start_s});
    }
    const takes = found.filter(({is_take}) => is_take).length;
    return {take: null, issues: [{code: 'several_takes', severity: 'note', params: {takes}}], sounds};
  }

  // Check a clip and teach it; a doubtful one only with `anyway`.
  async #learn(audio, named, {kind = 'take', anyway = true, found = []} = {}) {
    const word = cleanWord(named);
    const issues = [...found, ...await this.#spotter.check(audio, word, kind)];
    if (!anyway && issues.some(({severity}) => severity === 'doubt')) return {take: null, issues};
    const close = (await this.#spotter.accept(word)).filter(({code}) => code === 'close_word');
    const take = await this.#change(() => this.#history.make({
      kind: 'teach', word, make: () => this.#spotter.learn(audio, word, {anyway}),
      takes: (takes, id) => [...takes, {id, word, negative: false}],
    }));
    return {take, issues: [...issues, ...close]};
  }

  async #reject(audio) {
    // The word that it was mistaken for, which the core gives.
    let word = null;
    const take = await this.#change(() => this.#history.make({
      kind: 'reject', get word() { return word; }, make: async () => { word = await this.#spotter.reject(audio); },
      takes: (takes, id) => [...takes, {id, word, negative: true}],
    }));
    return {take, issues: []};
  }

  forget(word) {
    return this.#change(() => this.#history.make({
      kind: 'forget', word, make: () => this.#spotter.forget(word),
      takes: takes => takes.filter(take => take.word !== word),
    }));
  }

  rename(word, named) {
    const now = cleanWord(named);
    return this.#change(() => this.#history.make({
      kind: 'rename', word, new: now,
      make: () => this.#spotter.rename(word, now).catch(error => { throw Object.assign(error, {params: {word, new: now}}); }),
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

  // The words of a file, before anything is changed.
  inspect(bytes) {
    return this.#one(async () => {
      const ours = await this.#spotter.save();
      await this.#spotter.load(bytes);
      const words = await this.#spotter.words();
      await this.#spotter.load(ours);
      return {words: words.map(({word}) => word), addable: false};
    });
  }

  open(bytes) {
    return this.#change(async () => {
      await this.#spotter.load(bytes);
      this.#history.clear();
    });
  }

  // The words as a file; or the stored bytes that could not be read.
  file(unread) { return unread ? this.#unread.bytes : this.#one(() => this.#spotter.save()); }

  // The unreadable words were saved as a file.
  saved() {
    this.#unread.saved = true;
    return this.sendModel();
  }

  // Listening.

  async listen() {
    this.stop();
    this.#began = this.#received;
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

  // The next chunk of the microphone.
  push(chunk) {
    if (this.#recording) this.#pushTake(chunk).catch(error => this.#fail(error));
    if (this.#listening) this.#pushStream(chunk);
  }

  async #pushStream(chunk) {
    // A machine that cannot keep up drops audio instead of falling behind.
    if (this.#waiting >= MAX_WAITING) {
      this.#lost += chunk.length;
      this.#received += chunk.length;
      this.#recent = NOTHING;
      return;
    }
    const joined = new Int16Array(this.#recent.length + chunk.length);
    joined.set(this.#recent);
    joined.set(chunk, this.#recent.length);
    this.#recent = joined.slice(-Math.round(limits.recent_s * RATE));
    const lost = this.#lost;
    this.#lost = 0;
    this.#received += chunk.length;
    const received = this.#received;
    this.#waiting++;
    try {
      await this.#one(async () => {
        if (!this.#listening) return;
        if (lost) await this.#spotter.gap(lost);
        for (const event of await this.#spotter.push(chunk)) this.#sendEvent(event);
        const scores = await this.#spotter.streamScores();
        if (scores) this.#scored = {scores, until: received + SCORE_S * RATE};
      });
      this.#send({type: 'scores', time_s: received / RATE, scores: received < this.#scored.until ? this.#scored.scores : {}});
    } catch (error) {
      this.#send({type: 'listen', ...errorOf(error)});
    } finally {
      this.#waiting--;
    }
  }

  #sendEvent({word, score, confidence, start, end}) {
    const id = ++this.#events, from_s = this.#began / RATE, since_s = (this.#received - this.#recent.length) / RATE;
    const start_s = from_s + start, end_s = from_s + end;
    const place = at_s => Math.max(0, Math.round((at_s - since_s) * RATE));
    const audio = this.#recent.slice(place(start_s - limits.margin_s), place(end_s + limits.margin_s));
    this.#clips.set(id, {audio, at_ms: performance.now()});
    while (this.#clips.size > limits.events) this.#clips.delete(this.#clips.keys().next().value);
    this.#send({type: 'event', id, word, score, confidence, start_s, end_s});
  }

  async play({id}) { return spoken(await this.#eventSpeech(id)); }

  async correct({id, word}) {
    const take = await this.#eventSpeech(id);
    const outcome = word === null ? await this.#reject(take.audio) : await this.#learn(take.audio, word);
    this.#clips.delete(id);
    return {...outcome, ...spoken(take)};
  }

  // Learn a word that was missed; a doubtful one is held until it is kept or dropped.
  async missed({word}) {
    this.drop_missed();
    const recent_s = this.#recent.length / RATE, seconds = limits.recent_s;
    const take = await this.#spotter.examine(this.#recent);
    if (!hasSpeech(take)) throw coded('no_recent_speech', {seconds});
    // The last seconds are no take: others may have spoken, or the word was said again.
    const found = take.issue && take.issue.code !== 'several_words' ? [take.issue] : [];
    const outcome = await this.#learn(take.audio, word, {anyway: false, found});
    if (outcome.take === null) this.#missed = {word, audio: take.audio, at_ms: performance.now()};
    else this.#recent = NOTHING;
    return {...outcome, ...spoken(take), ago_s: rounded(recent_s - take.end_s, 1)};
  }

  async keep_missed({word}) {
    if (this.#missed?.word !== word) throw coded('take_expired');
    const outcome = await this.#learn(this.#missed.audio, word);
    this.drop_missed();
    this.#recent = NOTHING;
    return outcome;
  }

  drop_missed() { this.#missed = null; }

  // Clip of an event, cut to its speech if there is any.
  async #eventSpeech(id) {
    const kept = this.#clips.get(id);
    if (!kept) throw coded('event_expired');
    const take = await this.#spotter.examine(kept.audio);
    return hasSpeech(take) ? take : {...take, audio: kept.audio, end_s: kept.audio.length / RATE};
  }

  // Recording a take.

  record({id}) {
    this.cancel();
    this.#recording = {id, chunks: [], state: 'waiting'};
    return this.#spotter.startRecording();
  }

  async #pushTake(chunk) {
    const recording = this.#recording;
    recording.chunks.push(chunk);
    const state = await this.#spotter.pushRecording(chunk);
    if (recording !== this.#recording) return;
    if (state === 'over' || state === 'nobody') this.#send(await this.finish());
    else if (state !== recording.state) this.#send({type: 'recording', id: recording.id, state});
    recording.state = state;
  }

  #fail(error) {
    const id = this.#recording?.id;
    this.cancel();
    this.#send({type: 'take', id, ...errorOf(error)});
  }

  async finish() {
    if (!this.#recording) return {};
    const {id, chunks} = this.#recording;
    this.#recording = null;
    const audio = join(chunks), take = await this.#spotter.examine(audio);
    if (hasSpeech(take)) this.#take = {id, audio: take.audio};
    return {
      type: 'take', id, issues: take.issue ? [take.issue] : [], has_speech: hasSpeech(take), length_s: audio.length / RATE,
      start_s: rounded(take.start_s, 3), end_s: rounded(take.end_s, 3), snr_db: rounded(take.snr_db, 1),
    };
  }

  cancel() { this.#recording = this.#take = null; }

  async keep({id, word, anyway}) {
    if (this.#take?.id !== id) throw coded('take_expired');
    const outcome = await this.#learn(this.#take.audio, word, {anyway});
    if (outcome.take !== null && this.#take?.id === id) this.#take = null;
    return outcome;
  }

  #expire() {
    const oldest = performance.now() - limits.keep_s * 1000, before = this.#clips.size;
    for (const [id, {at_ms}] of this.#clips) if (at_ms < oldest) this.#clips.delete(id);
    if (this.#missed?.at_ms < oldest) this.drop_missed();
    if (before !== this.#clips.size) this.#send({type: 'correctable', events: [...this.#clips.keys()]});
  }
}
