// The studio's page without a server: everything runs in the browser.

import {StudioSocket, download} from './api.js';
import * as files from './files.js';
import * as listen from './listen.js';
import * as microphones from './microphones.js';
import {$, attempt, bytes, element} from './page.js';
import * as takes from './takes.js';
import * as teach from './teach.js';
import {fillIn, texts} from './texts.js';
import * as undo from './undo.js';
import * as words from './words.js';

// Near misses are not reported here.
Object.assign(texts, texts.alone, {forgetFinal: texts.forgetUndo, lanesNote: ''});
fillIn();
const socket = new StudioSocket();
takes.setUp();
teach.setUp(socket);
files.setUp();
words.setUp();
listen.setUp(socket);
microphones.setUp();
undo.setUp();
$('save-model').onclick = event => {
  event.preventDefault();
  attempt(() => download('words.bin'));
};

socket.addEventListener('model', (/** @type {CustomEvent} */ {detail: model}) => {
  $('model').textContent = texts.model(model.file, model.words.length, bytes(model.state_bytes));
  for (const part of [takes, teach, listen, words, undo]) part.show(model);
  showProblem(model.problem, model.unread);
});

function showProblem(text, unread = false) {
  $('problem').hidden = !text;
  const save = () => attempt(() => download('words-before.bin', true));
  $('problem').replaceChildren(text ?? '', ...(unread
    ? [' ', element('button', {type: 'button', className: 'small', onclick: save}, texts.saveModel)] : []));
}

socket.connect().catch(error => showProblem(texts.notLoaded(error.message)));
navigator.serviceWorker?.register('./offline.js').catch(() => { /* it still works, with a network */ });
