// The studio's page: one line to the program, and what each part shows of the model.

import {CLOSED, get, Line, sentence} from './api.js';
import * as files from './files.js';
import * as listen from './listen.js';
import * as map from './map.js';
import {$, bytes, count} from './page.js';
import * as teach from './teach.js';
import * as words from './words.js';

const line = new Line();
teach.setUp(line);
files.setUp();
words.setUp();
listen.setUp(line);

let away = 0;
let problem = null;

line.addEventListener('model', ({detail: model}) => {
  $('model').textContent = `${model.file}: ${count(model.words.length, 'word')}, ${bytes(model.state_bytes)}`;
  for (const part of [teach, listen, words, map]) part.show(model);
  problem = model.problem;
  showProblem();
});
line.addEventListener('open', () => { clearTimeout(away); away = 0; showProblem(); });
line.addEventListener('closed', () => { away ||= setTimeout(showAway, 1500); });
line.connect();

// A line that is closed does not say why; a request does.
async function showAway() {
  let why = 'The studio has no line for this page now.';
  try { await get('/api/state'); } catch (error) { why = error.message; }
  if (away) showProblem(why === CLOSED ? why : `${why} This page connects again by itself.`);
}

function showProblem(text = problem ? sentence(problem) : '') {
  $('problem').hidden = !text;
  $('problem').textContent = text;
}
