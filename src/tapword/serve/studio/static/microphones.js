// Which microphone, where there are several.

import * as microphone from './microphone.js';
import {$, attempt, element} from './page.js';
import {texts} from './texts.js';

// Further microphones than the browser's: [identifier, name].
let others = [];

export function setUp() {
  $('microphone').onchange = () => choose($('microphone').value);
  navigator.mediaDevices?.addEventListener?.('devicechange', listMicrophones);
  // Browsers give the names once the microphone is allowed.
  addEventListener('microphone-open', listMicrophones);
  listMicrophones();
}

export function choose(id) {
  $('microphone').value = id;
  dispatchEvent(new CustomEvent('microphone-chosen', {detail: id}));
  return attempt(() => microphone.choose(id));
}

export const chosen = () => $('microphone').value;

export function setOthers(list) {
  if (JSON.stringify(list) === JSON.stringify(others)) return;
  others = list;
  listMicrophones();
}

async function listMicrophones() {
  const found = await microphone.list(), before = $('microphone').value;
  $('microphone').replaceChildren(element('option', {value: ''}, texts.microphoneDefault),
    ...found.filter(({deviceId}) => deviceId).map(({deviceId, label}, i) =>
      element('option', {value: deviceId}, label || texts.microphoneNumber(i + 1))),
    ...others.map(([value, label]) => element('option', {value}, label)));
  if ([...$('microphone').options].some(({value}) => value === before)) $('microphone').value = before;
}
