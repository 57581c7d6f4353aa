// The taught words: teach more, hear more or less, rename, forget; the model file down and up.

import {post, postJson} from './api.js';
import {$, ask, bytes, count, element, icon, quoted, say} from './page.js';
import {ENOUGH, teachMore} from './teach.js';

let state = null;
let waiting = 0;

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
    // It would be taken out of the hand that moves it.
    clearTimeout(waiting);
    waiting = setTimeout(() => show(state), 250);
    return;
  }
  const focused = document.activeElement?.dataset?.key;
  $('word-list').replaceChildren(...model.words.map(row));
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  $('sensitivity-note').hidden = !model.has_thresholds || !model.words.length;
  $('words-empty').hidden = model.words.length > 0;
  $('words-empty').textContent = 'No words yet. What you teach appears here.';
  const samples = model.words.reduce((sum, entry) => sum + entry.count, 0);
  $('size').textContent = model.words.length
    ? `${count(model.words.length, 'word')} from ${count(samples, 'take')}: ${bytes(model.state_bytes)} ` +
      `of ${model.keeps_vectors ? 'statistics and feature vectors' : 'statistics'}, ` +
      `${bytes(model.bytes_per_word)} for each further word.`
    : '';
  $('download').hidden = model.revision === null;
}

function row({word, count: n, negatives, sensitivity}) {
  const button = (name, sign, label, action) => element('button', {
    type: 'button', className: 'quiet icon', title: label, 'aria-label': `${label}: ${word}`,
    'data-key': `${name}/${word}`, onclick: action,
  }, icon(sign));
  const hint = n < ENOUGH ? `, ${ENOUGH - n} more ${n === ENOUGH - 1 ? 'helps' : 'help'}` : '';
  return element('li', {},
    element('span', {className: 'name'}, word),
    element('span', {className: 'soft small'}, `${count(n, 'take')}${negatives ? `, ${negatives} rejected` : hint}`),
    element('span', {className: 'tools'},
      button('more', 'plus', 'Teach more', () => teachMore(word)),
      button('rename', 'pen', 'Rename', () => rename(word)),
      button('forget', 'bin', 'Forget', () => forget(word))),
    ...(state.has_thresholds ? [slider(word, sensitivity)] : []));
}

function slider(word, sensitivity) {
  const input = element('input', {
    type: 'range', min: 0, max: 1, step: 0.05, value: sensitivity, 'data-key': `sensitivity/${word}`,
    'aria-label': `Sensitivity: ${word}`, 'aria-describedby': 'sensitivity-note',
  });
  const shown = element('output', {className: 'soft small'}, sensitivity.toFixed(2));
  input.oninput = () => { shown.textContent = Number(input.value).toFixed(2); };
  input.onchange = () => {
    const value = Number(input.value);
    attempt(() => postJson('/api/sensitivity', {word, value}),
      `${word}: ${value > sensitivity ? 'hears more' : 'fewer false alarms'}`);
  };
  return element('span', {className: 'sensitivity'}, input, shown);
}

async function rename(word) {
  let problem = null, value = word;
  for (;;) {
    const {choice, text} = await ask({
      title: `Rename ${quoted(word)}`, text: problem ?? '', label: 'New name', value,
      choices: [['yes', 'Rename', 'primary']],
    });
    if (!choice || text === word) return;
    try {
      await postJson('/api/rename', {old: word, new: text});
      say(`${word} is now ${text}`);
      return;
    } catch (error) {
      problem = error.message;
      value = text;
    }
  }
}

// What a learner keeps of a forgotten word while there are others; the last one takes it along.
const TRACES = {
  differences: 'how these takes differed from one another, mixed with all others',
  changes: 'what these takes changed in the other words',
};

const whatStays = () => state.trace && state.words.length > 1
  ? `A trace stays until the last word is forgotten: ${TRACES[state.trace]}.`
  : 'Nothing of it stays in the model.';

async function forget(word) {
  const entry = state.words.find(other => other.word === word);
  const {choice} = await ask({
    title: `Forget ${quoted(word)}?`,
    text: `What ${count(entry?.count ?? 0, 'take')} taught of it will be gone. ${whatStays()} To have it back, teach it anew.`,
    choices: [['yes', 'Forget', 'danger']],
  });
  if (choice) await attempt(() => postJson('/api/forget', {word}), `${word} is forgotten`);
}

async function upload(file) {
  const choices = [];
  if (state.mergeable && state.words.length) choices.push(['add', 'Add its words', 'primary']);
  if (state.words.length) choices.push(['replace', 'Replace all', 'danger']);
  else choices.push(['replace', 'Use it', 'primary']);
  const {choice} = await ask({
    title: `Use ${file.name}?`,
    text: state.words.length
      ? `Its words can be added to the ${count(state.words.length, 'word')} here, or take their place. ` +
        'What is replaced is gone: download it first if it may be needed.'
      : 'Its words will be the words here.',
    choices,
  });
  if (!choice) return;
  await attempt(
    () => post('/api/model', file, {how: choice, revision: state.revision ?? ''}),
    `${file.name} is in use`);
}

async function attempt(change, done) {
  try {
    await change();
    say(done);
  } catch (error) {
    await ask({title: 'That did not work', text: error.message, choices: [['ok', 'All right', 'primary']]});
    show(state);
  }
}
