// Teach from recordings: the browser decodes them, so any format it can play will do.

import {post} from './api.js';
import {RATE} from './microphone.js';
import {$, element, icon, tool} from './page.js';
import * as takes from './takes.js';
import {wanted} from './teach.js';
import {number, sentence, sentences, texts} from './texts.js';

const LONGEST_S = 10, MOST_FILES = 50, MOST_BYTES = 20e6, MOST_SHOWN = 5;

// Files without a word, sorted by their names: [{word, files}].
let groups = [];

export function setUp() {
  $('files').onchange = () => { accept([...$('files').files].map(file => ({file, folder: ''}))); $('files').value = ''; };
  // A label is not reached by the keyboard; its input is, though it cannot be seen.
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
  // A file dropped beside the zone must not replace the page.
  addEventListener('dragover', event => event.preventDefault());
  addEventListener('drop', event => event.preventDefault());
}

// Files of a drop, those in folders too, each with the name of its folder.
export async function dropped(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some(entry => entry.isDirectory)) return [...transfer.files].map(file => ({file, folder: ''}));
  const found = [];
  const walk = async (entry, folder) => {
    if (found.length > MOST_FILES) return;
    if (entry.isFile) found.push({file: await new Promise((yes, no) => entry.file(yes, no)), folder});
    else {
      const reader = entry.createReader();
      for (let some; (some = await new Promise((yes, no) => reader.readEntries(yes, no))).length;) {
        for (const one of some) await walk(one, entry.name);
      }
    }
  };
  for (const entry of entries) await walk(entry, '');
  return found;
}

function accept(found) {
  if (!found.length) return;
  const list = $('file-list'), some = found.slice(0, MOST_FILES);
  list.replaceChildren();
  if (found.length > MOST_FILES) row(list, '', texts.onlyFirst(MOST_FILES), 'bad');
  if (wanted()) {
    teach(list, wanted(), some.map(({file}) => file));
    return;
  }
  const sorted = new Map();
  for (const {file, folder} of some) {
    const word = folder || guess(file.name);
    sorted.set(word, [...(sorted.get(word) ?? []), file]);
  }
  groups = [...sorted].map(([word, files]) => ({word, files}));
  showGroups();
  $('sort-title').focus();
}

// lamp_3.wav -> lamp
const guess = name => name.replace(/\.[^.]*$/, '').replace(/[\s_-]*\d+$/, '').replace(/_/g, ' ').trim();

function showGroups() {
  $('sort').hidden = !groups.length;
  $('sort-list').replaceChildren(...groups.map(group => {
    const names = group.files.slice(0, MOST_SHOWN).map(({name}) => name);
    const input = element('input', {type: 'text', value: group.word, maxLength: 100, autocomplete: 'off',
      autocapitalize: 'off', spellcheck: false, 'aria-label': texts.sortWord(names.join(', '))});
    input.oninput = () => { group.word = input.value.trim().normalize('NFC'); showTotal(); };
    const listed = group.files.slice(0, MOST_SHOWN).map(file => element('li', {},
      tool('play', texts.hearFile(file.name), `hear-file/${file.name}`, async () => {
        try { takes.play(await decode(file)); } catch (error) { row($('file-list'), file.name, sentence(error.message), 'bad'); }
      }),
      element('span', {}, file.name),
      tool('bin', texts.leaveOut(file.name), `leave-out/${file.name}`, () => {
        group.files = group.files.filter(other => other !== file);
        groups = groups.filter(({files}) => files.length);
        showGroups();
        (groups.length ? $('sort-title') : $('files')).focus();
      })));
    const more = group.files.length - MOST_SHOWN;
    if (more > 0) listed.push(element('li', {className: 'soft'}, texts.moreFiles(more)));
    return element('li', {}, input, element('ul', {className: 'rows'}, ...listed));
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
  const named = groups.filter(({word}) => word);
  groups = [];
  showGroups();
  $('files').focus({preventScroll: true});
  const list = $('file-list');
  list.replaceChildren();
  for (const {word, files} of named) await teach(list, word, files);
}

async function teach(list, word, files) {
  let kept = 0;
  for (const file of files) {
    const place = row(list, file.name, texts.busyFile, 'busy');
    try {
      const sound = await decode(file);
      const {take, warnings} = await post('/api/learn', sound, {word});
      takes.remember(take, sound, [file.name, ...warnings]);
      kept++;
      place(warnings.length ? sentences(`${texts.fileKept}.`, warnings) : texts.fileKept, warnings.length ? 'bad' : 'good');
    } catch (error) {
      place(sentence(error.message), 'bad');
    }
  }
  row(list, '', texts.keptOf(kept, word), kept ? 'good' : 'bad');
}

function row(list, name, text, kind) {
  const line = element('li', {});
  const update = (newText, newKind) => {
    line.className = newKind;
    line.replaceChildren(icon({good: 'good', bad: 'warn', busy: 'wait'}[newKind]),
      element('span', {}, ...(name ? [element('strong', {}, name), ' '] : []), newText));
  };
  update(text, kind);
  list.append(line);
  return update;
}

async function decode(file) {
  if (file.size > MOST_BYTES) throw new Error(texts.tooLarge);
  let sound;
  try {
    // A context of this rate resamples what it decodes.
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new Error(texts.unreadable);
  }
  if (sound.duration > LONGEST_S) throw new Error(texts.tooLong(number(sound.duration, 0), LONGEST_S));
  const samples = new Int16Array(sound.length);
  const channels = Array.from({length: sound.numberOfChannels}, (_, i) => sound.getChannelData(i));
  for (let i = 0; i < samples.length; i++) {
    const mean = channels.reduce((sum, channel) => sum + channel[i], 0) / channels.length;
    samples[i] = Math.max(-32768, Math.min(32767, Math.round(mean * 32768)));
  }
  return samples;
}
