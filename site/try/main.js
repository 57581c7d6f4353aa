// The studio's page without its program: all of it happens in the browser.

import {Line, download} from './api.js';
import * as files from './files.js';
import * as listen from './listen.js';
import * as microphones from './microphones.js';
import {$, attempt, bytes} from './page.js';
import * as takes from './takes.js';
import * as teach from './teach.js';
import {fillIn, texts} from './texts.js';
import * as undo from './undo.js';
import * as words from './words.js';

// What is said otherwise where there is no program.
Object.assign(texts, texts.alone, {forgetFinal: texts.forgetUndo});
fillIn();
const line = new Line();
teach.setUp(line);
files.setUp();
words.setUp();
listen.setUp(line);
microphones.setUp();
undo.setUp();
$('download').onclick = event => {
  event.preventDefault();
  attempt(() => download('words.bin'));
};

line.addEventListener('model', ({detail: model}) => {
  $('model').textContent = texts.model(model.file, model.words.length, bytes(model.state_bytes));
  for (const part of [takes, teach, listen, words, undo]) part.show(model);
  showProblem(model.problem);
});

function showProblem(text) {
  $('problem').hidden = !text;
  $('problem').textContent = text ?? '';
}

line.connect().catch(error => showProblem(texts.notLoaded(error.message)));
navigator.serviceWorker?.register('./offline.js').catch(() => { /* it works all the same, with a network */ });
