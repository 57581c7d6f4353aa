// The studio's page: one line to the program, and what each part shows of the model.

import {get, Line} from './api.js';
import * as files from './files.js';
import * as listen from './listen.js';
import * as map from './map.js';
import * as microphones from './microphones.js';
import * as more from './more.js';
import {$, bytes} from './page.js';
import * as takes from './takes.js';
import * as teach from './teach.js';
import {fillIn, sentence, texts} from './texts.js';
import * as undo from './undo.js';
import * as words from './words.js';

fillIn();
const line = new Line();
teach.setUp(line);
files.setUp();
words.setUp();
listen.setUp(line);
microphones.setUp();
more.setUp();
undo.setUp();

let away = 0;
let problem = null;

line.addEventListener('model', (/** @type {CustomEvent} */ {detail: model}) => {
  $('model').textContent = texts.model(model.file, model.words.length, bytes(model.state_bytes));
  for (const part of [takes, teach, listen, words, map, more, undo]) part.show(model);
  problem = model.problem;
  showProblem();
});
line.addEventListener('open', () => { clearTimeout(away); away = 0; showProblem(); });
line.addEventListener('closed', () => { away ||= setTimeout(showAway, 1500); });
line.connect();

// A line that is closed does not say why; a request does.
async function showAway() {
  let why = texts.noLine;
  try { await get('/api/state'); } catch (error) { why = error.message; }
  if (away) showProblem(why === texts.closed ? why : `${why} ${texts.again}`);
}

function showProblem(text = problem ? sentence(problem) : '') {
  $('problem').hidden = !text;
  $('problem').textContent = text;
}
