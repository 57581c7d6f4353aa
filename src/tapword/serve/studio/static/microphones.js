// Which microphone, where there are several.

import * as microphone from './microphone.js';
import {$, attempt, element} from './page.js';
import {texts} from './texts.js';

export function setUp() {
  $('microphone').onchange = () => attempt(() => microphone.choose($('microphone').value));
  navigator.mediaDevices?.addEventListener?.('devicechange', listMicrophones);
  // Browsers give the names once the microphone is allowed.
  addEventListener('microphone-open', listMicrophones);
  listMicrophones();
}

async function listMicrophones() {
  const found = await microphone.list(), chosen = $('microphone').value;
  $('microphone').replaceChildren(element('option', {value: ''}, texts.microphoneDefault),
    ...found.filter(({deviceId}) => deviceId).map(({deviceId, label}, i) =>
      element('option', {value: deviceId}, label || texts.microphoneNumber(i + 1))));
  if (found.some(({deviceId}) => deviceId === chosen)) $('microphone').value = chosen;
}
