// More: which microphone, the studio on a phone, the words for other programs.

import {download} from './api.js';
import * as microphone from './microphone.js';
import {$, attempt, element, icon, tell} from './page.js';
import {texts} from './texts.js';

let shown = '';

export function setUp() {
  $('microphone').onchange = () => attempt(() => microphone.choose($('microphone').value));
  navigator.mediaDevices?.addEventListener?.('devicechange', listMicrophones);
  // Browsers tell the names once the microphone was lent.
  addEventListener('microphone-open', listMicrophones);
  listMicrophones();
  $('phone-show').onclick = () => {
    const open = $('phone-code').hidden;
    $('phone-code').hidden = !open;
    $('phone-show').setAttribute('aria-expanded', String(open));
    if (open) $('phone-code').replaceChildren(element('img', {src: '/api/phone', alt: texts.phoneCode,
      onerror: () => { $('phone-code').textContent = texts.phoneFailed; }}));
  };
}

export function show({words, phone, exports}) {
  $('phone-lead').textContent = phone ? texts.phoneLead : texts.phoneLocal;
  $('phone-command').hidden = phone;
  $('phone-actions').hidden = !phone;
  $('export-box').hidden = !exports.length || !words.length;
  if (shown === exports.join()) return;
  shown = exports.join();
  $('export-actions').replaceChildren(...exports.map(kind => element('button', {
    type: 'button', onclick: () => make(kind),
  }, icon('down'), texts.exportFile[kind])));
}

async function make(kind) {
  tell($('export-status'), texts.exporting, 'busy');
  try {
    tell($('export-status'), texts.exported(await download(`/api/export/${kind}`)), 'good');
  } catch (error) {
    tell($('export-status'), error.message, 'bad');
  }
}

async function listMicrophones() {
  const found = await microphone.list(), chosen = $('microphone').value;
  $('microphone').replaceChildren(element('option', {value: ''}, texts.microphoneDefault),
    ...found.filter(({deviceId}) => deviceId).map(({deviceId, label}, i) =>
      element('option', {value: deviceId}, label || texts.microphoneNumber(i + 1))));
  if (found.some(({deviceId}) => deviceId === chosen)) $('microphone').value = chosen;
}
