// Teach by voice: press, say the word a few times; good takes are kept by themselves.

import {RATE, use} from './microphone.js';
import {$, element, icon, say, tell} from './page.js';
import * as takes from './takes.js';
import {number, sentence, sentences, texts} from './texts.js';
import {drawWave} from './wave.js';

export const ENOUGH = 3, PLENTY = 5;
// What the stage has room for; the first chunks of a microphone may still be settling.
const SHOWN_S = 4, SETTLE_CHUNKS = 3, AROUND_S = 0.2;

let line = null;
let state = null;
let phase = 'idle';
// The take that was recorded last: its sound, what the studio says of it, and as what it may be kept.
let sound = null;
let verdict = null;
let held = null;
// Takes are numbered, so that news of one that was thrown away are not taken for the next one's.
let count = 0;
let chunks = [];
let release = null;
// A series: its word, how many takes are wanted, were sent to be kept, and were kept; and what there
// was to say of them.
let series = null;
// Takes that were sent to be kept, by their numbers.
const sent = new Map();

export function setUp(theLine) {
  line = theLine;
  line.addEventListener('recording', ({detail}) => {
    if (detail.id === count && phase === 'recording') showState(detail.state);
  });
  line.addEventListener('take', ({detail}) => { if (detail.error || detail.id === count) judge(detail); });
  line.addEventListener('keep', ({detail}) => kept(detail));
  line.addEventListener('closed', () => fail(texts.away));
  $('record').onclick = () => phase === 'recording' ? stop() : record();
  $('keep').onclick = keepAnyway;
  $('again').onclick = record;
  $('hear').onclick = () => takes.play(sound);
  $('word').oninput = showCount;
  $('word').onkeydown = event => {
    if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); record(); }
  };
  addEventListener('keydown', event => {
    if (event.key === 'Escape' && phase === 'recording') end('');
  });
  addEventListener('microphone-lost', () => fail(texts.microphoneGone));
  new ResizeObserver(redraw).observe($('wave'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  setPhase('idle');
}

export function show(model) {
  const first = state === null;
  state = model;
  $('known').replaceChildren(...model.words.map(({word}) => element('option', {value: word})));
  $('teach-lead').textContent = model.words.length ? texts.teachMoreLead : texts.welcome;
  showCount();
  if (first && !model.words.length && matchMedia('(pointer: fine)').matches) $('word').focus();
}

export function teachMore(word) {
  if (phase === 'recording') end('');
  $('word').value = word;
  clear();
  showCount();
  $('teach').scrollIntoView({block: 'start'});
  $('record').focus({preventScroll: true});
}

export const wanted = () => $('word').value.trim().normalize('NFC');

const known = word => state?.words.find(entry => entry.word === word)?.count ?? 0;

// So many takes are asked for at once: until there are plenty, and then one by one.
const missing = word => Math.max(1, PLENTY - known(word));

function showCount() {
  const word = series?.word ?? wanted(), n = known(word);
  const dots = Array.from({length: PLENTY}, (_, i) => element('li', {
    className: (i < n ? 'full' : '') + (i >= ENOUGH ? ' extra' : ''),
  }));
  $('dots').replaceChildren(...dots);
  $('takes').textContent = !n ? texts.toBegin(ENOUGH) : n < ENOUGH ? texts.ofEnough(n, ENOUGH) : texts.ready(n);
  if (phase === 'idle') $('stage-text').textContent = texts.press(missing(word));
  takes.showOf(word);
}

function setPhase(newPhase) {
  phase = newPhase;
  const looks = {
    idle: ['mic', texts.record], opening: ['wait', texts.opening], recording: ['stop', texts.stop],
    judging: ['wait', texts.moment], judged: ['mic', texts.record],
  };
  const [sign, text] = looks[newPhase];
  $('record').replaceChildren(icon(sign), element('span', {}, text));
  $('record').className = `record ${newPhase}`;
  $('record').setAttribute('aria-disabled', String(newPhase === 'opening' || newPhase === 'judging'));
  $('take-actions').hidden = newPhase !== 'judged';
  $('stage-text').hidden = newPhase === 'judging' || newPhase === 'judged';
}

// Nothing on the stage.
function clear() {
  sound = verdict = held = null;
  setPhase('idle');
  tell($('verdict'), '');
  redraw();
}

function redraw() {
  if (phase === 'recording') return;
  drawWave($('wave'), sound ?? [], verdict?.speech ? {start: verdict.start_s, end: verdict.end_s} : {});
}

async function record() {
  if (phase !== 'idle' && phase !== 'judged') return;
  const word = wanted();
  if (!word) {
    tell($('verdict'), texts.typeFirst, 'bad');
    $('word').focus();
    return;
  }
  series = {word, of: missing(word), sent: 0, done: 0, warnings: []};
  $('word').readOnly = true;
  clear();
  setPhase('opening');
  $('stage-text').textContent = texts.openingMicrophone;
  $('record').focus({preventScroll: true});
  let settled;
  const settling = new Promise(resolve => { settled = resolve; });
  setTimeout(settled, 2000);
  chunks = [];
  try {
    if (!line.open) throw new Error(texts.notConnected);
    release = await use(chunk => {
      if (phase === 'recording') line.sound(chunk);
      chunks.push(chunk);
      if (chunks.length === SETTLE_CHUNKS) settled();
      if (phase === 'recording') drawWave($('wave'), join(chunks), {seconds: SHOWN_S});
    });
  } catch (error) {
    fail(error.message);
    $('stage-text').textContent = texts.nothingRecorded;
    return;
  }
  await settling;
  if (series) next();
}

// The next take of the series.
function next() {
  sound = verdict = held = null;
  chunks = [];
  line.wish({type: 'record', id: ++count});
  setPhase('recording');
  showState('waiting');
  say(prompt());
}

const prompt = () => texts.sayNow(series.word, series.sent + 1, series.of);

function showState(now) {
  $('stage-text').textContent = now === 'speaking' ? texts.listening : prompt();
}

function stop() {
  setPhase('judging');
  series.stopping = true;
  line.wish({type: 'finish'});
}

// The series is over; what was kept of it is said, or why it came to nothing.
function end(text, kind = 'bad') {
  if (line.open && phase === 'recording') line.wish({type: 'cancel'});
  release?.(true);
  release = null;
  const over = series;
  series = null;
  $('word').readOnly = false;
  clear();
  tell($('verdict'), over?.warnings.length ? sentences(text, over.warnings) : text,
    over?.warnings.length ? 'bad' : text ? kind : '');
  showCount();
}

function fail(text) {
  if (series) end(text);
}

function judge(said) {
  if (!series || said.error) { if (said.error) fail(sentence(said.error)); return; }
  // A few more chunks came while the studio made up its mind.
  sound = join(chunks).slice(0, Math.round(said.length_s * RATE));
  verdict = said;
  setPhase('judging');
  redraw();
  if (!said.problem) {
    sent.set(said.id, {sound, verdict, series});
    series.sent++;
    try {
      line.wish({type: 'keep', id: said.id, word: series.word, careful: true});
      // The next one begins at once: who says a word five times does not wait until it was learned.
      if (!series.stopping && series.sent < series.of) next();
      else tell($('verdict'), texts.learning, 'busy');
    } catch (error) { fail(error.message); }
  } else if (!said.speech && series.stopping) {
    endWhenKept();
  } else {
    wait(sentence(said.problem), said.speech ? said.problem : null);
  }
}

function endWhenKept() {
  if (phase === 'recording' || series.done < series.sent) return;
  end(series.done ? praise(series.word) : '', 'good');
  $('record').focus({preventScroll: true});
}

// A take that is not kept by itself: the person decides.
function wait(text, note) {
  if (note) held = takes.hold(series.word, sound, note);
  const {warnings} = series;
  release?.(true);
  release = null;
  series = null;
  $('word').readOnly = false;
  setPhase('judged');
  redraw();
  $('keep').hidden = !held;
  $('keep').textContent = texts.keepAnyway;
  $('hear').hidden = !held;
  tell($('verdict'), sentences(text, warnings), 'bad');
  $('again').focus();
}

function kept({id, take, error, warnings}) {
  const one = sent.get(id), goesOn = series !== null && one?.series === series;
  sent.delete(id);
  if (!one) return;
  if (!error && take !== null) takes.remember(take, spoken(one), warnings);
  // A take of a series that was broken off is learned and listed, and that is all.
  if (!goesOn) return;
  if (error) { fail(sentence(error)); return; }
  if (take === null) {
    if (phase === 'recording') line.wish({type: 'cancel'});
    ({sound, verdict} = one);
    wait(sentences(texts.doubtful, warnings), warnings.join('; '));
    return;
  }
  const {start_s, end_s, snr_db} = one.verdict;
  series.done++;
  series.warnings = [...new Set([...series.warnings, ...warnings])];
  tell($('verdict'), texts.good(series.done, series.of, number(end_s - start_s, 1), Math.round(snr_db)), 'good');
  endWhenKept();
}

// The speech in a recording, with a little around it.
const spoken = ({sound: all, verdict: {start_s, end_s}}) =>
  all.slice(Math.max(0, Math.round((start_s - AROUND_S) * RATE)), Math.round((end_s + AROUND_S) * RATE));

async function keepAnyway() {
  const {word} = held;
  tell($('verdict'), texts.learning, 'busy');
  $('take-actions').hidden = true;
  try {
    await takes.keepAnyway(held);
    clear();
    tell($('verdict'), praise(word), 'good');
    $('record').focus({preventScroll: true});
  } catch (error) {
    $('take-actions').hidden = false;
    tell($('verdict'), error.message, 'bad');
    $('again').focus();
  }
}

function praise(word) {
  const n = known(word);
  if (n < ENOUGH) return texts.moreTakes(word, ENOUGH - n);
  return n <= PLENTY ? texts.isReady(word, n) : texts.kept(word, n);
}

function join(pieces) {
  const all = new Int16Array(pieces.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of pieces) { all.set(chunk, at); at += chunk.length; }
  return all;
}
