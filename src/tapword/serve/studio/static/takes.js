// Takes since the page was opened: the page holds their audio, the model what they taught.

import {post, postJson} from './api.js';
import {RATE} from './microphone.js';
import {$, announce, attempt, element, redraw, tool} from './page.js';
import {number, texts} from './texts.js';

// Takes that were learned, by their numbers in the studio; and those that were not kept.
const learned = new Map();
const waiting = [];
let inModel = [];
let lastNumber = 0;
let shownWord = '';

export function show({history}) {
  inModel = history.takes;
  draw();
}

export function showOf(word) {
  shownWord = word;
  draw();
}

// Note a take that was learned, its audio, and notes about it.
export function remember(id, audio, notes = []) {
  if (id === null) return;
  learned.set(id, {name: ++lastNumber, audio, notes});
  draw();
}

// Note a take that was not kept, but can be.
export function hold(word, audio, note) {
  waiting.push({name: ++lastNumber, word, audio, notes: [note]});
  draw();
  return waiting.at(-1);
}

export async function keepAnyway(take) {
  const answer = await post('api/learn', take.audio, {word: take.word, kind: 'take', anyway: 1});
  drop(take);
  remember(answer.take, take.audio, take.notes);
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

function draw() {
  const kept = inModel.filter(({id, word}) => word === shownWord && learned.has(id))
    .map(take => ({...learned.get(take.id), ...take}));
  const all = [...kept, ...waiting.filter(({word}) => word === shownWord)]
    .sort((one, two) => one.name - two.name);
  $('take-box').hidden = !all.length;
  redraw(() => $('take-list').replaceChildren(...all.map(row)), () => $('record'));
}

function row(take) {
  const {id, name, word, audio, notes, negative} = take;
  const shown = [
    ...(negative ? [texts.notThisWord(word)] : []),
    ...(id === undefined ? [texts.notKept] : []), ...notes,
  ];
  const seconds = number(audio.length / RATE, 1);
  return element('li', {},
    tool('play', texts.playTake(name), `play/${name}`, () => play(audio)),
    element('span', {className: 'what'}, element('span', {}, texts.take(name, seconds)),
      ...(shown.length ? [element('span', {className: 'soft small'}, ` ${shown.join(' ')}`)] : [])),
    element('span', {className: 'tools'},
      ...(id === undefined ? [tool('good', texts.keepTake(name), `keep/${name}`, () => attempt(() => keepAnyway(take)))] : []),
      tool('bin', texts.removeTake(name), `remove/${name}`, () => {
        if (id === undefined) { drop(take); announce(texts.removed); }
        else attempt(() => remove(id), texts.removed);
      })));
}
