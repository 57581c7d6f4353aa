// Teach by voice: press the button and say the word a few times; good takes are saved automatically.

import {tryNow} from './listen.js';
import {RATE, use} from './microphone.js';
import {$, announce, element, icon, showStatus} from './page.js';
import * as takes from './takes.js';
import {ENOUGH, PLENTY} from './takes.js';
import {errorText, issueText, number, texts, withIssues} from './texts.js';
import {drawWave} from './wave.js';

// Seconds that the waveform shows; the first chunks of a microphone may still be settling.
const SHOWN_S = 4, SETTLE_CHUNKS = 3, MARGIN_S = 0.2;

let socket = null;
let state = null;
let phase = 'idle';
// The last take: its audio, what the studio found in it, and the entry in the list if it waits.
let audio = null;
let found = null;
let held = null;
// Takes are numbered, so that an update about a cancelled one is not mistaken for the next one's.
let count = 0;
let chunks = [];
let release = null;
// A series: its word, how many takes are wanted, were sent and were learned; and issues of them.
let series = null;
// Takes that were sent to be learned, by number.
const sent = new Map();

export function setUp(theSocket) {
  socket = theSocket;
  socket.addEventListener('recording', ({detail}) => {
    if (detail.id === count && phase === 'recording') showState(detail.state);
  });
  socket.addEventListener('take', ({detail}) => { if (detail.error || detail.id === count) taken(detail); });
  socket.addEventListener('keep', ({detail}) => learned(detail));
  socket.addEventListener('closed', () => fail(texts.away));
  $('record').onclick = () => phase === 'recording' ? stop() : record();
  $('keep').onclick = keepAnyway;
  $('again').onclick = record;
  $('play').onclick = () => takes.play(audio);
  $('word').oninput = () => { $('next-actions').hidden = true; showCount(); };
  $('try-now').onclick = tryNow;
  $('teach-another').onclick = () => {
    $('word').value = '';
    clear();
    showCount();
    $('word').focus();
  };
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
  $('word').maxLength = $('dialog-input').maxLength = model.max_word_bytes;
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

export const wordInField = () => $('word').value.trim().normalize('NFC');

// Throw what is wrong with a word, before it is recorded.
export function checkWord(word) {
  const max_bytes = state?.max_word_bytes ?? Infinity;
  if (!word) throw new Error(texts.typeFirst);
  if (!isKnown(word) && new TextEncoder().encode(word).length > max_bytes) {
    throw new Error(errorText({error: '', code: 'word_too_long', params: {max_bytes}}));
  }
}

const takesOf = word => state?.words.find(entry => entry.word === word)?.count ?? 0;

// Clips that a voice spoke; the page without a server has none.
const isTyped = word => Boolean(state?.words.find(entry => entry.word === word)?.synthetic);

export const isKnown = word => takesOf(word) > 0 || isTyped(word);

// Takes to ask for at once: until there are plenty, then one at a time.
const missing = word => Math.max(1, PLENTY - takesOf(word));

function showCount() {
  const word = series?.word ?? wordInField(), n = takesOf(word);
  const dots = Array.from({length: PLENTY}, (_, i) => element('li', {
    className: (i < n ? 'full' : '') + (i >= ENOUGH ? ' extra' : ''),
  }));
  $('dots').replaceChildren(...dots);
  $('takes').textContent = !n ? isTyped(word) ? texts.typedTakes : texts.toBegin(ENOUGH) : n < ENOUGH ? texts.ofEnough(n, ENOUGH) : texts.ready(n);
  if (phase === 'idle') $('stage-text').textContent = texts.press(missing(word));
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
  $('next-actions').hidden = true;
  $('stage-text').hidden = newPhase === 'judging' || newPhase === 'judged';
}

// Clear the waveform and the message.
function clear() {
  audio = found = held = null;
  setPhase('idle');
  showStatus($('verdict'), '');
  redraw();
}

function redraw() {
  if (phase === 'recording') return;
  drawWave($('wave'), audio ?? [], found?.has_speech ? {start: found.start_s, end: found.end_s} : {});
}

async function record() {
  if (phase !== 'idle' && phase !== 'judged') return;
  const word = wordInField();
  try { checkWord(word); } catch (error) {
    showStatus($('verdict'), error.message, 'bad');
    $('word').focus();
    return;
  }
  series = {word, of: missing(word), sent: 0, done: 0, issues: []};
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
    if (!socket.open) throw new Error(texts.notConnected);
    release = await use(chunk => {
      if (phase === 'recording') socket.sendAudio(chunk);
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
  audio = found = held = null;
  chunks = [];
  socket.send({type: 'record', id: ++count});
  setPhase('recording');
  showState('waiting');
  announce(prompt());
}

const prompt = () => texts.sayNow(series.word, series.sent + 1, series.of);

function showState(now) {
  $('stage-text').textContent = now === 'speaking' ? texts.listening : prompt();
}

function stop() {
  setPhase('judging');
  series.stopping = true;
  socket.send({type: 'finish'});
}

// End the series, and show how it went.
function end(text, kind = 'bad') {
  if (socket.open && phase === 'recording') socket.send({type: 'cancel'});
  release?.(true);
  release = null;
  const over = series;
  series = null;
  $('word').readOnly = false;
  clear();
  const issues = over?.issues ?? [];
  showStatus($('verdict'), withIssues(text, issues), issues.length ? 'bad' : text ? kind : '');
  showCount();
}

function fail(text) {
  if (series) end(text);
}

// A take was recorded: send it to be learned, or show what is wrong with it.
function taken(take) {
  if (!series || take.error) { if (take.error) fail(errorText(take)); return; }
  // A few more chunks arrived while the studio decided.
  audio = join(chunks).slice(0, Math.round(take.length_s * RATE));
  found = take;
  setPhase('judging');
  redraw();
  if (!take.issues.length) {
    sent.set(take.id, {audio, found, series});
    series.sent++;
    try {
      socket.send({type: 'keep', id: take.id, word: series.word, anyway: false});
      // The next one starts at once: nobody waits between takes until one was learned.
      if (!series.stopping && series.sent < series.of) next();
      else showStatus($('verdict'), texts.learning, 'busy');
    } catch (error) { fail(error.message); }
  } else if (!take.has_speech && series.stopping) {
    endWhenKept();
  } else {
    wait('', take.issues);
  }
}

function endWhenKept() {
  if (phase === 'recording' || series.done < series.sent) return;
  const {word, done} = series;
  end(done ? progress(word) : '', 'good');
  if (done) showNext(word);
  $('record').focus({preventScroll: true});
}

// A take that is not saved automatically: the person decides.
function wait(text, issues) {
  const refused = issues.some(({severity}) => severity === 'refuse');
  if (!refused) held = takes.hold(series.word, audio, found.end_s - found.start_s, issues.map(issueText).join(' '));
  const all = [...issues, ...series.issues];
  release?.(true);
  release = null;
  series = null;
  $('word').readOnly = false;
  setPhase('judged');
  redraw();
  $('keep').hidden = !held;
  $('keep').textContent = texts.keepAnyway;
  $('play').hidden = !held;
  showStatus($('verdict'), withIssues(text, all), 'bad');
  $('again').focus();
}

// The studio learned a take that was sent, or doubts it.
function learned(answer) {
  const {id, take, issues = []} = answer;
  const one = sent.get(id), goesOn = series !== null && one?.series === series;
  sent.delete(id);
  if (!one) return;
  if (!answer.error && take !== null) takes.remember(take, speechOf(one), one.found.end_s - one.found.start_s, issues.map(issueText));
  // A take of a series that was cancelled is learned and listed, and that is all.
  if (!goesOn) return;
  if (answer.error) { fail(errorText(answer)); return; }
  if (take === null) {
    if (phase === 'recording') socket.send({type: 'cancel'});
    ({audio, found} = one);
    wait(texts.doubtful, issues);
    return;
  }
  const {start_s, end_s, snr_db} = one.found;
  const codes = new Set(series.issues.map(issueText));
  series.done++;
  series.issues.push(...issues.filter(issue => !codes.has(issueText(issue))));
  showStatus($('verdict'), texts.good(series.done, series.of, number(end_s - start_s, 1), Math.round(snr_db)), 'good');
  endWhenKept();
}

// The speech in a take, with a margin.
const speechOf = ({audio: all, found: {start_s, end_s}}) =>
  all.slice(Math.max(0, Math.round((start_s - MARGIN_S) * RATE)), Math.round((end_s + MARGIN_S) * RATE));

async function keepAnyway() {
  const {word} = held;
  showStatus($('verdict'), texts.learning, 'busy');
  $('take-actions').hidden = true;
  try {
    await takes.keepAnyway(held);
    clear();
    showStatus($('verdict'), progress(word), 'good');
    showNext(word);
    $('record').focus({preventScroll: true});
  } catch (error) {
    $('take-actions').hidden = false;
    showStatus($('verdict'), error.message, 'bad');
    $('again').focus();
  }
}

// What to do next, once a word has plenty of takes.
function showNext(word) { $('next-actions').hidden = takesOf(word) < PLENTY; }

// How many takes a word has, and how many more help.
function progress(word) {
  const n = takesOf(word);
  if (n < ENOUGH) return texts.moreTakes(word, ENOUGH - n);
  return n <= PLENTY ? texts.isReady(word, n) : texts.kept(word, n);
}

function join(pieces) {
  const all = new Int16Array(pieces.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of pieces) { all.set(chunk, at); at += chunk.length; }
  return all;
}
