// The studio's page: one line to the program, and what each part shows of the model.

import {Line, sentence} from './api.js';
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
line.addEventListener('closed', () => { away ||= setTimeout(showProblem, 1500, true); });
line.connect();

function showProblem(gone = false) {
  const text = gone
    ? 'The studio does not answer. Is the tapword program still running? This page connects again by itself.'
    : problem ? sentence(problem) : '';
  $('problem').hidden = !text;
  $('problem').textContent = text;
}
