// Teach by voice: press, say the word, see it, keep it.

import {sentence, sentences} from './api.js';
import {RATE, use} from './microphone.js';
import {$, count, element, icon, quoted, say, tell} from './page.js';
import {drawWave} from './wave.js';

export const ENOUGH = 3, PLENTY = 5;
// What the stage has room for; the first chunks of a microphone may still be settling.
const SHOWN_S = 4, SETTLE_CHUNKS = 3;

let line = null;
let state = null;
let phase = 'idle';
let take = null;
let verdict = null;
// Takes are numbered, so that news of one that was thrown away are not taken for the next one's.
let number = 0;
let keeping = false;

export function setUp(theLine) {
  line = theLine;
  line.addEventListener('recording', ({detail}) => {
    if (detail.id === number && phase === 'recording') showState(detail.state);
  });
  line.addEventListener('take', ({detail}) => { if (detail.error || detail.id === number) finish(detail); });
  line.addEventListener('keep', ({detail}) => kept(detail));
  line.addEventListener('closed', () => {
    finish({error: AWAY});
    if (keeping) kept({error: AWAY});
  });
  $('record').onclick = () => phase === 'recording' ? stop() : record();
  $('keep').onclick = keep;
  $('again').onclick = record;
  $('hear').onclick = hear;
  $('word').oninput = showCount;
  $('word').onkeydown = event => {
    if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); record(); }
  };
  addEventListener('keydown', event => {
    if (event.key === 'Escape' && phase === 'recording') drop(null);
  });
  addEventListener('microphone-lost', () => {
    if (phase === 'recording') drop({error: 'The microphone is gone. Plug it in again, then record anew.'});
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

const AWAY = 'The studio does not answer. Is the tapword program still running? Then record it again.';

// Ends the take that is being recorded: what the studio says of it, or null to throw it away.
let finish = () => {};

async function record() {
  if (phase === 'opening' || phase === 'recording' || phase === 'judging' || keeping) return;
  if (!wanted()) {
    tell($('verdict'), 'Type the word first.', 'bad');
    $('word').focus();
    return;
  }
  take = verdict = null;
  setPhase('opening');
  $('stage-text').textContent = 'Opening the microphone';
  tell($('verdict'), '');
  const chunks = [];
  const done = new Promise(resolve => { finish = resolve; });
  let release;
  try {
    line.wish({type: 'record', id: ++number});
    release = await use(chunk => {
      line.sound(chunk);
      chunks.push(chunk);
      if (phase === 'recording') drawWave($('wave'), join(chunks), {seconds: SHOWN_S});
    });
  } catch (error) {
    if (line.open) line.wish({type: 'cancel'});
    setPhase('idle');
    $('stage-text').textContent = 'Nothing was recorded';
    tell($('verdict'), error.message, 'bad');
    return;
  }
  await until(() => chunks.length >= SETTLE_CHUNKS, 2000);
  setPhase('recording');
  showState('waiting');
  say(`Say ${wanted()} now`);
  const said = await done;
  release(true);
  if (said === null || said.error) {
    idle();
    if (said) tell($('verdict'), sentence(said.error), 'bad');
    return;
  }
  // A few more chunks came while the studio made up its mind.
  take = join(chunks).slice(0, Math.round(said.length_s * RATE));
  verdict = said;
  judge();
}

function showState(now) {
  $('stage-text').textContent = now === 'speaking' ? 'Listening…' : `Say ${quoted(wanted())} now`;
}

function drop(said) {
  if (line.open) line.wish({type: 'cancel'});
  finish(said);
}

function stop() {
  setPhase('judging');
  line.wish({type: 'finish'});
}

function judge() {
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

function keep() {
  const word = wanted();
  if (!word) { tell($('verdict'), 'Type the word first.', 'bad'); return; }
  try {
    line.wish({type: 'keep', id: verdict.id, word});
  } catch (error) {
    tell($('verdict'), error.message, 'bad');
    return;
  }
  keeping = true;
  $('take-actions').hidden = true;
  tell($('verdict'), 'Learning…', 'busy');
}

function kept({word, error, warnings}) {
  keeping = false;
  if (error) {
    $('take-actions').hidden = phase !== 'judged';
    tell($('verdict'), sentence(error), 'bad');
    return;
  }
  const known = state.words.find(entry => entry.word === word)?.count ?? 0;
  idle();
  tell($('verdict'), sentences(praise(word, known), warnings), warnings.length ? 'bad' : 'good');
  $('record').focus();
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
