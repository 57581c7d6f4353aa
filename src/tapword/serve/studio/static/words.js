// The words: teach more, rename, forget; save and open the model file.

import {post, postJson} from './api.js';
import {$, announce, ask, attempt, bytes, element, find, redraw, tool} from './page.js';
import * as sensitivity from './sensitivity.js';
import {ENOUGH} from './takes.js';
import {teachMore} from './teach.js';
import {texts} from './texts.js';

let state = null;
let waiting = 0;
// The last new name of a word.
let renamed = '';

export function setUp() {
  sensitivity.setUp(() => show(state));
  $('open-model').onclick = () => $('model-file').click();
  $('model-file').onchange = async () => {
    const [file] = $('model-file').files;
    $('model-file').value = '';
    if (file) await open(file);
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
      ? [element('span', {className: 'name'}, texts.allWords), sensitivity.slider(null, model.sensitivity)] : []));
  }, () => find(`rename/${renamed}`) ?? $('words-title'));
  $('sensitivity-note').hidden = !sliders;
  $('words-empty').hidden = model.words.length > 0;
  const samples = model.words.reduce((sum, entry) => sum + entry.count, 0);
  $('size').textContent = model.words.length
    ? texts.size(model.words.length, samples, bytes(model.state_bytes), model.keeps_vectors, bytes(model.bytes_per_word))
    : '';
  $('save-model').hidden = model.revision === null;
}

function row({word, count, negatives, synthetic, sensitivity: value}) {
  const button = (name, sign, label, action) =>
    tool(sign, texts.ofWord(label, word), `${name}/${word}`, action);
  const hints = negatives ? [texts.rejected(negatives)] : count < ENOUGH ? [texts.moreHelp(ENOUGH - count)] : [];
  // Clips that a voice spoke; the page without a server has none.
  const spoken = synthetic ? [texts.spoken(synthetic)] : [];
  return element('li', {},
    element('span', {className: 'name'}, word),
    element('span', {className: 'soft small'}, [texts.takes(count), ...spoken, ...hints].join(', ')),
    element('span', {className: 'tools'},
      button('more', 'plus', texts.teachMore, () => teachMore(word)),
      button('rename', 'pen', texts.rename, () => rename(word)),
      button('forget', 'bin', texts.forget, () => forget(word))),
    ...(state.has_thresholds ? [sensitivity.slider(word, value)] : []));
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
    text: `${texts.forgetText((entry?.count ?? 0) + (entry?.synthetic ?? 0))} ${whatStays()} ${undo}`,
    choices: [['yes', texts.forget, 'danger']],
  });
  if (choice) await attempt(() => postJson('api/forget', {word}), texts.forgotten(word));
}

async function open(file) {
  // Nobody is asked about a file that is not a model.
  const found = await attempt(() => post('api/model', file, {how: 'inspect'}));
  if (!found) return;
  const choices = [];
  if (found.addable && state.words.length) choices.push(['add', texts.addWords, 'primary']);
  if (state.words.length) choices.push(['replace', texts.replaceAll, 'danger']);
  else choices.push(['replace', texts.useIt, 'primary']);
  const {choice} = await ask({
    title: texts.useFile(file.name),
    text: `${texts.fileWords(found.words)} ${state.words.length ? texts.useText(state.words.length) : texts.useNew}`,
    choices,
  });
  if (!choice) return;
  await attempt(
    () => post('api/model', file, {how: choice, revision: state.revision ?? ''}),
    texts.inUse(file.name));
}
