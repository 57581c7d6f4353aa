// The words: teach more, set the sensitivity, rename, forget; download and upload the model file.

import {post, postJson} from './api.js';
import {$, announce, ask, attempt, bytes, element, find, redraw, tool} from './page.js';
import {ENOUGH, teachMore} from './teach.js';
import {number, texts} from './texts.js';

let state = null;
let waiting = 0;
// The last new name of a word.
let renamed = '';

export function setUp() {
  $('upload').onclick = () => $('upload-file').click();
  $('upload-file').onchange = async () => {
    const [file] = $('upload-file').files;
    $('upload-file').value = '';
    if (file) await upload(file);
  };
}

export function show(model) {
  state = model;
  if (document.querySelector('.sensitivity input:active')) {
    // A redraw would interrupt the slider that is being moved.
    clearTimeout(waiting);
    waiting = setTimeout(() => show(state), 250);
    return;
  }
  const sliders = model.has_thresholds && model.words.length > 0;
  redraw(() => {
    $('word-list').replaceChildren(...model.words.map(row));
    $('all-words').replaceChildren(...(sliders && model.words.length > 1
      ? [element('span', {className: 'name'}, texts.allWords), slider(null, model.sensitivity)] : []));
  }, () => find(`rename/${renamed}`) ?? $('words-title'));
  $('sensitivity-note').hidden = !sliders;
  $('words-empty').hidden = model.words.length > 0;
  const samples = model.words.reduce((sum, entry) => sum + entry.count, 0);
  $('size').textContent = model.words.length
    ? texts.size(model.words.length, samples, bytes(model.state_bytes), model.keeps_vectors, bytes(model.bytes_per_word))
    : '';
  $('download').hidden = model.revision === null;
}

function row({word, count, negatives, sensitivity}) {
  const button = (name, sign, label, action) =>
    tool(sign, texts.ofWord(label, word), `${name}/${word}`, action);
  const hints = negatives ? [texts.rejected(negatives)] : count < ENOUGH ? [texts.moreHelp(ENOUGH - count)] : [];
  return element('li', {},
    element('span', {className: 'name'}, word),
    element('span', {className: 'soft small'}, [texts.takes(count), ...hints].join(', ')),
    element('span', {className: 'tools'},
      button('more', 'plus', texts.teachMore, () => teachMore(word)),
      button('rename', 'pen', texts.rename, () => rename(word)),
      button('forget', 'bin', texts.forget, () => forget(word))),
    ...(state.has_thresholds ? [slider(word, sensitivity)] : []));
}

function slider(word, sensitivity) {
  const name = word ?? texts.allWords;
  const input = element('input', {
    type: 'range', min: 0, max: 1, step: 0.05, value: sensitivity, 'data-key': `sensitivity/${word ?? '\n'}`,
    'aria-label': texts.sensitivity(name), 'aria-describedby': 'sensitivity-note',
  });
  const shown = element('output', {className: 'soft small'}, number(sensitivity, 2));
  input.oninput = () => { shown.textContent = number(Number(input.value), 2); };
  input.onchange = async () => {
    const value = Number(input.value);
    const done = (value > sensitivity ? texts.fewerMisses : texts.fewerAlarms)(name);
    if (!await attempt(() => postJson('api/sensitivity', {word, value}), done)) show(state);
  };
  return element('span', {className: 'sensitivity'}, input, shown);
}

async function rename(word) {
  let problem = null, value = word;
  for (;;) {
    const {choice, text} = await ask({
      title: texts.renameTitle(word), text: problem ?? '', label: texts.newName, value,
      choices: [['yes', texts.rename, 'primary']],
    });
    if (!choice || text === word) return;
    try {
      renamed = text;
      await postJson('api/rename', {old: word, new: text});
      announce(texts.renamed(word, text));
      return;
    } catch (error) {
      problem = error.message;
      value = text;
    }
  }
}

// What the model keeps of a forgotten word while there are other words.
const whatStays = () => state.trace && state.words.length > 1 ? texts.traces[state.trace] : texts.noTrace;

async function forget(word) {
  const entry = state.words.find(other => other.word === word);
  const undo = state.mergeable ? texts.forgetUndo : texts.forgetFinal;
  const {choice} = await ask({
    title: texts.forgetTitle(word),
    text: `${texts.forgetText(entry?.count ?? 0)} ${whatStays()} ${undo}`,
    choices: [['yes', texts.forget, 'danger']],
  });
  if (choice) await attempt(() => postJson('api/forget', {word}), texts.forgotten(word));
}

async function upload(file) {
  const choices = [];
  if (state.mergeable && state.words.length) choices.push(['add', texts.addWords, 'primary']);
  if (state.words.length) choices.push(['replace', texts.replaceAll, 'danger']);
  else choices.push(['replace', texts.useIt, 'primary']);
  const {choice} = await ask({
    title: texts.useFile(file.name),
    text: state.words.length ? texts.useText(state.words.length) : texts.useNew,
    choices,
  });
  if (!choice) return;
  await attempt(
    () => post('api/model', file, {how: choice, revision: state.revision ?? ''}),
    texts.inUse(file.name));
}
