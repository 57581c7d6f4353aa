// Teach from recordings. The browser decodes them, so it takes every format that it can play.

import {MAX_FILE_S, post} from './api.js';
import {RATE} from './microphone.js';
import {$, element, icon, tool} from './page.js';
import * as takes from './takes.js';
import {checkWord, isKnown, wordInField} from './teach.js';
import {number, texts, withIssues} from './texts.js';

const MAX_FILES = 50, MAX_BYTES = 20e6, MAX_SHOWN = 5;

// Files that wait until their words are confirmed: [{name, word, files}], by the names of the files.
let groups = [];

export function setUp() {
  $('files').onchange = () => { accept([...$('files').files].map(file => ({file, folder: ''}))); $('files').value = ''; };
  // The keyboard does not reach a label, but its hidden input.
  $('files').onfocus = () => $('drop').classList.add('focus');
  $('files').onblur = () => $('drop').classList.remove('focus');
  $('sort').onsubmit = event => { event.preventDefault(); teachSorted(); };
  $('sort-cancel').onclick = () => { groups = []; showGroups(); $('files').focus(); };
  const zone = $('teach');
  let inside = 0;
  zone.ondragenter = event => { event.preventDefault(); inside++; $('drop').classList.add('over'); };
  zone.ondragleave = () => { if (!--inside) $('drop').classList.remove('over'); };
  zone.ondragover = event => event.preventDefault();
  zone.ondrop = async event => {
    event.preventDefault();
    inside = 0;
    $('drop').classList.remove('over');
    accept(await dropped(event.dataTransfer));
  };
  // A file dropped elsewhere must not replace the page.
  addEventListener('dragover', event => event.preventDefault());
  addEventListener('drop', event => event.preventDefault());
}

// Files of a drop, including those in folders, each with the name of its folder.
export async function dropped(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some(entry => entry.isDirectory)) return [...transfer.files].map(file => ({file, folder: ''}));
  const found = [];
  const walk = async (entry, folder) => {
    if (found.length > MAX_FILES) return;
    if (entry.isFile) found.push({file: await new Promise((resolve, reject) => entry.file(resolve, reject)), folder});
    else {
      const reader = entry.createReader();
      for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length;) {
        for (const one of some) await walk(one, entry.name);
      }
    }
  };
  for (const entry of entries) await walk(entry, '');
  return found;
}

function accept(found) {
  if (!found.length) return;
  const list = $('file-list'), field = wordInField(), sorted = new Map();
  list.replaceChildren();
  if (found.length > MAX_FILES) row(list, '').show(texts.onlyFirst(MAX_FILES), 'bad');
  for (const {file, folder} of found.slice(0, MAX_FILES)) {
    const name = folder || wordInName(file.name);
    sorted.set(name, [...(sorted.get(name) ?? []), file]);
  }
  // The field says what the files are, unless they are named like another word of the model.
  groups = [...sorted].map(([name, files]) => ({name, word: !field || isKnown(name) ? name : field, files}));
  if (field && groups.every(({name}) => sameWord(name, field))) {
    teachSorted();
    return;
  }
  showGroups();
  $('sort-title').focus();
}

// lamp_3.wav -> lamp
const wordInName = name => name.replace(/\.[^.]*$/, '').replace(/[\s_-]*\d+$/, '').replace(/_/g, ' ').trim();

const sameWord = (one, other) => one.toLowerCase() === other.toLowerCase();

function showGroups() {
  const field = wordInField();
  $('sort').hidden = !groups.length;
  $('sort-list').replaceChildren(...groups.map(group => {
    const names = group.files.slice(0, MAX_SHOWN).map(({name}) => name);
    const input = element('input', {type: 'text', value: group.word, autocomplete: 'off',
      autocapitalize: 'off', spellcheck: false, 'aria-label': texts.sortWord(names.join(', '))});
    input.oninput = () => { group.word = input.value.trim().normalize('NFC'); showTotal(); };
    const listed = group.files.slice(0, MAX_SHOWN).map(file => element('li', {},
      tool('play', texts.playFile(file.name), `play-file/${file.name}`, async () => {
        try { takes.play(await decode(file)); } catch (error) { row($('file-list'), file.name).show(error.message, 'bad'); }
      }),
      element('span', {}, file.name),
      tool('bin', texts.leaveOut(file.name), `leave-out/${file.name}`, () => {
        group.files = group.files.filter(other => other !== file);
        groups = groups.filter(({files}) => files.length);
        showGroups();
        (groups.length ? $('sort-title') : $('files')).focus();
      })));
    const more = group.files.length - MAX_SHOWN;
    if (more > 0) listed.push(element('li', {className: 'soft'}, texts.moreFiles(more)));
    const differs = field && !sameWord(group.name, field);
    return element('li', {}, input, ...(differs
      ? [element('p', {className: 'soft small'}, texts.sortDiffers(group.name, field))] : []),
    element('ul', {className: 'rows'}, ...listed));
  }));
  showTotal();
}

function showTotal() {
  const named = groups.filter(({word}) => word);
  const files = named.reduce((sum, group) => sum + group.files.length, 0);
  $('sort-teach').disabled = !files;
  $('sort-teach').textContent = files ? texts.sortTeach(files, new Set(named.map(({word}) => word)).size) : texts.sortNone;
}

async function teachSorted() {
  const filesOf = new Map();
  for (const {word, files} of groups) if (word) filesOf.set(word, [...(filesOf.get(word) ?? []), ...files]);
  groups = [];
  showGroups();
  $('files').focus({preventScroll: true});
  const list = $('file-list');
  list.replaceChildren();
  for (const [word, files] of filesOf) await teach(list, word, files);
}

async function teach(list, word, files) {
  let kept = 0;
  for (const file of files) kept += await teachFile(list, word, file);
  row(list, '').show(texts.keptOf(kept, word), kept ? 'good' : 'bad');
}

// Teach one file, each of its takes; doubtful ones wait. Returns how many takes were taught.
async function teachFile(list, word, file) {
  const line = row(list, file.name);
  line.show(texts.checking, 'busy');
  try {
    checkWord(word);
    const audio = await decode(file);
    const {sounds, take, issues} = await teachClip(audio, word);
    if (!sounds) return shown(line, word, {name: file.name, audio, take, issues});
    line.show(withIssues('', issues), 'good');
    let kept = 0;
    for (const one of sounds) {
      const name = texts.soundAt(file.name, number(one.start_s, 1));
      kept += shown(row(list, name), word, {...one, name, audio: audio.slice(one.first, one.first + one.samples)});
    }
    return kept;
  } catch (error) {
    line.show(error.message, 'bad');
    return 0;
  }
}

const teachClip = (audio, word, query = {}) => post('api/learn', audio, {word, kind: 'file', ...query});

// Show what came of a clip; a doubtful one can be kept. Returns how many takes were taught.
function shown(line, word, {name, audio, take, issues}) {
  const text = withIssues(take === null ? texts.fileNotKept : texts.fileKept, issues);
  if (take === null) {
    const refused = issues.some(({severity}) => severity === 'refuse');
    const keep = async () => {
      line.show(texts.checking, 'busy');
      try {
        const answer = await teachClip(audio, word, {anyway: 1});
        shown(line, word, {name, audio, ...answer});
      } catch (error) { line.show(error.message, 'bad'); }
    };
    line.show(text, 'bad', refused ? [] : [element('button', {type: 'button', className: 'small',
      'aria-label': texts.keepFile(name), onclick: keep}, texts.keepAnyway)]);
    return 0;
  }
  takes.remember(take, audio, audio.length / RATE, [name, withIssues('', issues)]);
  line.show(text, issues.length ? 'bad' : 'good');
  return 1;
}

// A line of the list of files.
function row(list, name) {
  const line = element('li', {});
  list.append(line);
  return {show(text, kind, buttons = []) {
    line.className = kind;
    line.replaceChildren(icon({good: 'good', bad: 'warn', busy: 'wait'}[kind]),
      element('span', {}, ...(name ? [element('strong', {}, name), ' '] : []), text), ...buttons);
  }};
}

async function decode(file) {
  if (file.size > MAX_BYTES) throw new Error(texts.tooLarge);
  let sound;
  try {
    // A context of this rate resamples what it decodes.
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new Error(texts.unreadable);
  }
  if (sound.duration > MAX_FILE_S) throw new Error(texts.tooLong(number(sound.duration, 0), MAX_FILE_S));
  const samples = new Int16Array(sound.length);
  const channels = Array.from({length: sound.numberOfChannels}, (_, i) => sound.getChannelData(i));
  for (let i = 0; i < samples.length; i++) {
    const mean = channels.reduce((sum, channel) => sum + channel[i], 0) / channels.length;
    samples[i] = Math.max(-32768, Math.min(32767, Math.round(mean * 32768)));
  }
  return samples;
}
