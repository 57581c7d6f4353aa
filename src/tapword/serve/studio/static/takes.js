// The takes since the page was opened: their sound is here alone, what they taught in the model.

import {post, postJson} from './api.js';
import {RATE} from './microphone.js';
import {$, attempt, element, redraw, say, tool} from './page.js';
import {number, sentence, texts} from './texts.js';

// Of each take that was learned, by its number in the studio; and those that were not kept.
const learned = new Map();
const waiting = [];
let there = [];
let named = 0;
let shownWord = '';

export function show({history}) {
  there = history.takes;
  draw();
}

export function showOf(word) {
  shownWord = word;
  draw();
}

// A take was learned: its sound, and what there is to say of it.
export function remember(id, sound, notes = []) {
  if (id === null) return;
  learned.set(id, {name: ++named, sound, notes});
  draw();
}

// A take was not kept, and may be yet.
export function hold(word, sound, note) {
  waiting.push({name: ++named, word, sound, notes: [note]});
  draw();
  return waiting.at(-1);
}

export async function keepAnyway(take) {
  const answer = await post('/api/learn', take.sound, {word: take.word, anyway: 1});
  drop(take);
  remember(answer.take, take.sound, take.notes);
  return answer;
}

function drop(take) {
  if (waiting.includes(take)) waiting.splice(waiting.indexOf(take), 1);
  draw();
}

export const canRemove = id => there.some(take => take.id === id);

export const remove = id => postJson('/api/remove', {take: id});

export function play(sound) {
  const context = new AudioContext();
  const buffer = context.createBuffer(1, sound.length, RATE);
  buffer.copyToChannel(Float32Array.from(sound, sample => sample / 32768), 0);
  const source = new AudioBufferSourceNode(context, {buffer});
  source.connect(context.destination);
  source.onended = () => context.close();
  source.start();
}

function draw() {
  const kept = there.filter(({id, word}) => word === shownWord && learned.has(id))
    .map(take => ({...learned.get(take.id), ...take}));
  const all = [...kept, ...waiting.filter(({word}) => word === shownWord)]
    .sort((one, two) => one.name - two.name);
  $('take-box').hidden = !all.length;
  redraw(() => $('take-list').replaceChildren(...all.map(row)), () => $('record'));
}

function row(take) {
  const {id, name, word, sound, notes, negative} = take;
  const said = [
    ...(negative ? [texts.notThisWord(word)] : []),
    ...(id === undefined ? [texts.notKept] : []), ...notes,
  ];
  const seconds = number(sound.length / RATE, 1);
  return element('li', {},
    tool('play', texts.hearTake(name), `hear/${name}`, () => play(sound)),
    element('span', {className: 'what'}, element('span', {}, texts.take(name, seconds)),
      ...(said.length ? [element('span', {className: 'soft small'}, ` ${said.map(sentence).join(' ')}`)] : [])),
    element('span', {className: 'tools'},
      ...(id === undefined ? [tool('good', texts.keepTake(name), `keep/${name}`, () => attempt(() => keepAnyway(take)))] : []),
      tool('bin', texts.removeTake(name), `remove/${name}`, () => {
        if (id === undefined) { drop(take); say(texts.removed); }
        else attempt(() => remove(id), texts.removed);
      })));
}
