// More: the studio on a phone, the words for other programs.

import {download} from './api.js';
import {$, element, icon, showStatus} from './page.js';
import {texts} from './texts.js';

// Part of the path of a page that Home Assistant passes on.
const INGRESS = 'hassio_ingress';

let shown = '';

export function setUp() {
  $('phone-show').onclick = () => {
    const open = $('phone-code').hidden;
    $('phone-code').hidden = !open;
    $('phone-show').setAttribute('aria-expanded', String(open));
    if (open) $('phone-code').replaceChildren(element('img', {src: 'api/phone', alt: texts.phoneCode,
      onerror: () => { $('phone-code').textContent = texts.phoneFailed; }}));
  };
}

export function show({words, phone, exports}) {
  // Home Assistant shows the page on phones itself; the program's own address may be out of reach.
  $('phone-box').hidden = location.pathname.includes(INGRESS);
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
  showStatus($('export-status'), texts.exporting, 'busy');
  try {
    showStatus($('export-status'), texts.exported(await download(`api/export/${kind}`)), 'good');
  } catch (error) {
    showStatus($('export-status'), error.message, 'bad');
  }
}
