// The studio's page: one socket to the program; each part shows its share of the model.

import {get, StudioSocket} from './api.js';
import * as files from './files.js';
import * as listen from './listen.js';
import * as map from './map.js';
import * as microphones from './microphones.js';
import * as more from './more.js';
import {$, bytes} from './page.js';
import * as satellites from './satellites.js';
import * as takes from './takes.js';
import * as teach from './teach.js';
import {errorText, fillIn, texts} from './texts.js';
import * as typing from './typing.js';
import * as undo from './undo.js';
import * as words from './words.js';

fillIn();
const socket = new StudioSocket();
takes.setUp();
teach.setUp(socket);
typing.setUp(socket);
files.setUp();
words.setUp();
listen.setUp(socket);
microphones.setUp();
more.setUp();
satellites.setUp(socket);
undo.setUp();

let away = 0;
let problem = null;

socket.addEventListener('model', (/** @type {CustomEvent} */ {detail: model}) => {
  $('model').textContent = texts.model(model.file, model.words.length, bytes(model.state_bytes));
  for (const part of [takes, teach, typing, listen, words, map, more, undo, satellites]) part.show(model);
  problem = model.problem;
  showProblem();
});
socket.addEventListener('open', () => { clearTimeout(away); away = 0; showProblem(); });
socket.addEventListener('closed', () => { away ||= setTimeout(showAway, 1500); });
socket.connect();

// A closed socket does not say why; a request does.
async function showAway() {
  let why = texts.noSocket;
  try { await get('api/state'); } catch (error) { why = error.message; }
  if (away) showProblem(why === texts.closed ? why : `${why} ${texts.again}`);
}

function showProblem(text = problem ? errorText({error: problem}) : '') {
  $('problem').hidden = !text;
  $('problem').textContent = text;
}
