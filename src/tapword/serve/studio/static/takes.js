// Takes since the page was opened: the page holds their audio, the model what they taught.

import {post, postJson} from './api.js';
import {RATE} from './microphone.js';
import {$, announce, attempt, element, redraw, tool} from './page.js';
import {number, texts} from './texts.js';
import {picture} from './wave.js';

// Takes that a word needs, and those that make it reliable.
export const ENOUGH = 3, PLENTY = 5;
const MAX_SHOWN = 20;

// Takes that were learned, by their numbers in the studio; and those that were not kept. Each has
// its audio, the seconds of speech in it, and notes.
const learned = new Map();
const waiting = [];
let inModel = [];
let lastNumber = 0;
let all = false;

export function setUp() {
  $('takes-all').onclick = () => { all = true; draw(); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  draw();
}

export function show({history}) {
  inModel = history.takes;
  draw();
}

// Note a take that was learned.
export function remember(id, audio, seconds, notes = []) {
  if (id === null) return;
  learned.set(id, {name: ++lastNumber, audio, seconds, notes});
  draw();
}

// Note a take that was not kept, but can be.
export function hold(word, audio, seconds, note) {
  waiting.push({name: ++lastNumber, word, audio, seconds, notes: [note]});
  draw();
  return waiting.at(-1);
}

export async function keepAnyway(take) {
  const answer = await post('api/learn', take.audio, {word: take.word, kind: 'take', anyway: 1});
  drop(take);
  remember(answer.take, take.audio, take.seconds, take.notes);
  return answer;
}

function drop(take) {
  if (waiting.includes(take)) waiting.splice(waiting.indexOf(take), 1);
  draw();
}

export const canRemove = id => inModel.some(take => take.id === id);

export const remove = id => postJson('api/remove', {take: id});

export function play(audio) {
  const context = new AudioContext();
  const buffer = context.createBuffer(1, audio.length, RATE);
  buffer.copyToChannel(Float32Array.from(audio, sample => sample / 32768), 0);
  const source = new AudioBufferSourceNode(context, {buffer});
  source.connect(context.destination);
  source.onended = () => context.close();
  source.start();
}

// The newest first.
function draw() {
  const kept = inModel.filter(({id}) => learned.has(id)).map(take => ({...learned.get(take.id), ...take}));
  const takes = [...kept, ...waiting].sort((one, two) => two.name - one.name);
  const shown = all ? takes : takes.slice(0, MAX_SHOWN);
  $('takes-empty').hidden = takes.length > 0;
  $('takes-all').hidden = shown.length === takes.length;
  $('takes-all').textContent = texts.showAll(takes.length);
  redraw(() => $('take-list').replaceChildren(...shown.map(row)), () => $('record'));
}

function row(take) {
  const {id, name, word, audio, seconds, notes, negative} = take;
  const shown = [
    ...(id === undefined ? [texts.notKept] : []), ...notes,
  ].filter(Boolean);
  const title = texts.take(name, number(seconds, 1));
  return element('li', {},
    tool('play', texts.playTake(name), `play/${name}`, () => play(audio)),
    element('span', {className: 'what'},
      element('span', {className: 'take-title'}, element('strong', {}, negative ? texts.notThisWord(word) : word), ' ',
        element('span', {className: 'soft small'}, title)),
      picture(audio, texts.waveformOf(name)),
      ...(shown.length ? [element('span', {className: 'soft small'}, shown.join(' '))] : [])),
    element('span', {className: 'tools'},
      ...(id === undefined ? [tool('good', texts.keepTake(name), `keep/${name}`, () => attempt(() => keepAnyway(take)))] : []),
      tool('bin', texts.removeTake(name), `remove/${name}`, () => {
        if (id === undefined) { drop(take); announce(texts.removed); }
        else attempt(() => remove(id), texts.removed);
      })));
}
