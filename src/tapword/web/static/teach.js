// Teach by voice: press, say the word, see it, keep it.

import {post, sentence} from './api.js';
import {level, RATE, use} from './microphone.js';
import {$, count, element, icon, quoted, say, tell} from './page.js';
import {drawWave} from './wave.js';

export const ENOUGH = 3, PLENTY = 5;
const CHUNK_S = 0.08;
const BEFORE_CHUNKS = 4, LONGEST_S = 4, SILENT_S = 3, AFTER_S = 0.64;
const OVER_NOISE_DB = 12, QUIETEST_DB = -52;

let state = null;
let phase = 'idle';
let take = null;
let verdict = null;

export function setUp() {
  $('record').onclick = () => phase === 'recording' ? finish() : record();
  $('keep').onclick = keep;
  $('again').onclick = record;
  $('hear').onclick = hear;
  $('word').oninput = showCount;
  $('word').onkeydown = event => {
    if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); record(); }
  };
  addEventListener('keydown', event => {
    if (event.key === 'Escape' && phase === 'recording') finish(true);
  });
  new ResizeObserver(redraw).observe($('wave'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  idle();
}

export function show(model) {
  const first = state === null;
  state = model;
  $('known').replaceChildren(...model.words.map(({word}) => element('option', {value: word})));
  $('teach-lead').textContent = model.words.length
    ? 'Type a new word, or one that should be known better.'
    : 'Welcome. Type a word, press the button and say it: three takes are enough to begin.';
  showCount();
  if (first && !model.words.length && matchMedia('(pointer: fine)').matches) $('word').focus();
}

export function teachMore(word) {
  $('word').value = word;
  idle();
  showCount();
  $('teach').scrollIntoView({block: 'start'});
  $('record').focus({preventScroll: true});
}

const wanted = () => $('word').value.trim().normalize('NFC');

function showCount() {
  const word = wanted();
  const known = state?.words.find(entry => entry.word === word)?.count ?? 0;
  const dots = Array.from({length: PLENTY}, (_, i) => element('li', {
    className: (i < known ? 'full' : '') + (i >= ENOUGH ? ' extra' : ''),
  }));
  $('dots').replaceChildren(...dots);
  const text = !known ? `${ENOUGH} takes to begin`
    : known < ENOUGH ? `${known} of ${ENOUGH} takes`
    : `Ready, ${count(known, 'take')}`;
  $('takes').textContent = text;
  $('dots').setAttribute('aria-label', text);
}

function setPhase(next) {
  phase = next;
  const looks = {
    idle: ['mic', 'Record'], opening: ['wait', 'Opening'], recording: ['stop', 'Stop'],
    judging: ['wait', 'One moment'], judged: ['mic', 'Record'],
  };
  const [sign, text] = looks[next];
  $('record').replaceChildren(icon(sign), element('span', {}, text));
  $('record').className = `record ${next}`;
  $('record').disabled = next === 'opening' || next === 'judging';
  $('take-actions').hidden = next !== 'judged';
  $('stage-text').hidden = next === 'judging' || next === 'judged';
}

function idle() {
  take = verdict = null;
  setPhase('idle');
  $('stage-text').textContent = 'Press, then say the word';
  tell($('verdict'), '');
  redraw();
}

function redraw() {
  if (phase === 'recording') return;
  drawWave($('wave'), take ?? [], verdict?.speech ? {start: verdict.start_s, end: verdict.end_s} : {});
}

// Ends the take that is being recorded; true throws it away.
let finish = () => {};

async function record() {
  if (phase === 'opening' || phase === 'recording' || phase === 'judging') return;
  if (!wanted()) {
    tell($('verdict'), 'Type the word first.', 'bad');
    $('word').focus();
    return;
  }
  take = verdict = null;
  setPhase('opening');
  $('stage-text').textContent = 'Opening the microphone';
  tell($('verdict'), '');
  const chunks = [], levels = [];
  let spoken = 0, quiet = 0, ready = false;
  const done = new Promise(resolve => { finish = resolve; });
  let release;
  try {
    release = await use(chunk => {
      chunks.push(chunk);
      levels.push(level(chunk));
      if (!ready) {
        if (chunks.length > BEFORE_CHUNKS) { chunks.shift(); levels.shift(); }
        return;
      }
      drawWave($('wave'), join(chunks), {seconds: LONGEST_S});
      const now = levels.at(-1), floor = Math.min(...levels);
      if (now > Math.max(floor + OVER_NOISE_DB, QUIETEST_DB)) { spoken++; quiet = 0; } else quiet++;
      const passed = chunks.length * CHUNK_S;
      const over = spoken >= 2 && quiet * CHUNK_S >= AFTER_S;
      if (over || passed >= LONGEST_S || (!spoken && passed >= SILENT_S)) finish();
    });
  } catch (error) {
    setPhase('idle');
    $('stage-text').textContent = 'No microphone';
    tell($('verdict'), error.message, 'bad');
    return;
  }
  // The first chunks of a microphone may still be settling.
  await until(() => chunks.length >= BEFORE_CHUNKS - 1, 2000);
  ready = true;
  setPhase('recording');
  $('stage-text').textContent = `Say ${quoted(wanted())} now`;
  say(`Say ${wanted()} now`);
  const cancelled = await done;
  release(true);
  if (cancelled === true) { idle(); return; }
  take = join(chunks);
  await judge();
}

async function judge() {
  setPhase('judging');
  redraw();
  try {
    verdict = await post('/api/examine', take);
  } catch (error) {
    setPhase('idle');
    tell($('verdict'), error.message, 'bad');
    return;
  }
  setPhase('judged');
  redraw();
  $('keep').hidden = !verdict.speech;
  $('keep').textContent = verdict.problem ? 'Keep it anyway' : 'Keep it';
  $('keep').className = verdict.problem ? '' : 'primary';
  $('again').className = verdict.problem ? 'primary' : '';
  const length = (verdict.end_s - verdict.start_s).toFixed(1);
  tell($('verdict'), verdict.problem ? sentence(verdict.problem)
    : `Good take: ${length} s, ${Math.round(verdict.snr_db)} dB above the background.`,
  verdict.problem ? 'bad' : 'good');
  $(verdict.problem ? 'again' : 'keep').focus();
}

async function keep() {
  const word = wanted();
  if (!word) { tell($('verdict'), 'Type the word first.', 'bad'); return; }
  $('take-actions').hidden = true;
  tell($('verdict'), 'Learning…', 'busy');
  try {
    const model = await post('/api/learn', take, verdict.problem ? {word, anyway: 1} : {word});
    const known = model.words.find(entry => entry.word === word)?.count ?? 0;
    idle();
    tell($('verdict'), praise(word, known), 'good');
    $('record').focus();
  } catch (error) {
    $('take-actions').hidden = false;
    tell($('verdict'), error.message, 'bad');
  }
}

function praise(word, known) {
  if (known < ENOUGH) return `Kept. ${count(ENOUGH - known, 'more take')} of ${quoted(word)}, please.`;
  if (known === ENOUGH) return `${quoted(word)} is ready. Two more takes make it steadier.`;
  return `Kept: ${quoted(word)} has ${known} takes now.`;
}

function hear() {
  const context = new AudioContext();
  const sound = context.createBuffer(1, take.length, RATE);
  sound.copyToChannel(Float32Array.from(take, sample => sample / 32768), 0);
  const source = new AudioBufferSourceNode(context, {buffer: sound});
  source.connect(context.destination);
  source.onended = () => context.close();
  source.start();
}

function join(chunks) {
  const all = new Int16Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) { all.set(chunk, at); at += chunk.length; }
  return all;
}

function until(condition, most_ms) {
  const start = performance.now();
  return new Promise(resolve => {
    const look = () => condition() || performance.now() - start > most_ms
      ? resolve() : setTimeout(look, 20);
    look();
  });
}
