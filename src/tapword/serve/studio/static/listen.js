// Listen live: level, scores, events, and putting them right.

import {Lanes} from './lanes.js';
import {level, use} from './microphone.js';
import {sentence, sentences} from './api.js';
import {$, ask, element, icon, quoted, say, tell} from './page.js';

const MOST_EVENTS = 8;
// A score is about the sound half a second ago: the detector hears a word out first.
const BEHIND_S = 0.5;

const lanes = new Lanes();
let line = null;
let state = null;
let release = null;
let wanted = false;
// The studio's time and the page's, of the newest scores: between them the plot moves smoothly.
let latest = {time_s: 0, at_ms: 0};
let reader = 0;

export function setUp(theLine) {
  line = theLine;
  $('listen-button').onclick = () => wanted ? stop() : start();
  $('missed').onsubmit = event => {
    event.preventDefault();
    tell($('listen-status'), 'Learning…', 'busy');
    wish({type: 'missed', word: $('missed-word').value});
  };
  line.addEventListener('scores', ({detail}) => {
    latest = {time_s: detail.time_s - BEHIND_S, at_ms: performance.now()};
    lanes.add(latest.time_s, detail.scores);
  });
  line.addEventListener('thresholds', ({detail}) => lanes.setThresholds(detail.thresholds));
  line.addEventListener('event', ({detail}) => { lanes.mark(detail); addEvent(detail); });
  line.addEventListener('listen', ({detail}) => {
    if (detail.error) { stop(); tell($('listen-status'), sentence(detail.error), 'bad'); return; }
    latest = {time_s: 0, at_ms: performance.now()};
    lanes.reset(state.words.map(({word}) => word), detail.thresholds);
  });
  line.addEventListener('missed', ({detail}) => tell($('listen-status'),
    detail.error ? sentence(detail.error)
      : sentences(`Learned once more: ${quoted(detail.word)}.`, detail.warnings),
    detail.error || detail.warnings.length ? 'bad' : 'good'));
  line.addEventListener('correct', ({detail}) => corrected(detail));
  line.addEventListener('correctable', ({detail}) => expire(detail.events));
  line.addEventListener('open', () => { expire([]); if (wanted) line.wish({type: 'listen'}); });
  addEventListener('microphone-lost', () => {
    if (!wanted) return;
    stop();
    tell($('listen-status'), 'The microphone is gone. Plug it in again, then start anew.', 'bad');
  });
}

export function show(model) {
  state = model;
  const words = model.words.map(({word}) => word);
  const none = !words.length;
  $('listen-button').disabled = none;
  if (none && wanted) stop();
  lanes.setWords(words);
  const chosen = $('missed-word').value;
  $('missed-word').replaceChildren(...words.map(word => element('option', {value: word}, word)));
  if (words.includes(chosen)) $('missed-word').value = chosen;
  $('events').querySelectorAll('select').forEach(fill);
  showEmpty();
}

function showEmpty() {
  const quiet = !wanted && !$('events').children.length;
  $('listen-empty').hidden = !quiet;
  $('listen-empty').textContent = !state?.words.length
    ? 'Nothing to listen for yet. Teach a word first, then watch it being heard here.'
    : 'Press the button and say one of your words.';
  $('events-title').hidden = !$('events').children.length;
}

function setButton() {
  const button = $('listen-button');
  button.setAttribute('aria-pressed', String(wanted));
  button.className = wanted ? 'live' : 'primary';
  button.replaceChildren(icon(wanted ? 'stop' : 'mic'),
    element('span', {}, wanted ? 'Stop listening' : 'Start listening'));
  for (const id of ['level-row', 'lanes', 'missed']) $(id).hidden = !wanted;
  $('lanes-note').hidden = true;
  showEmpty();
}

async function start() {
  tell($('listen-status'), 'Opening the microphone…', 'busy');
  try {
    wanted = true;
    line.wish({type: 'listen'});
    release = await use(hear);
  } catch (error) {
    stop();
    tell($('listen-status'), error.message, 'bad');
    return;
  }
  tell($('listen-status'), '');
  say('Listening');
  setButton();
  draw();
}

function stop() {
  wanted = false;
  release?.();
  release = null;
  if (line.open) line.wish({type: 'stop'});
  setButton();
  tell($('listen-status'), '');
  say('Stopped listening');
}

function hear(chunk) {
  line.sound(chunk);
  const now = level(chunk), share = Math.max(0, Math.min(1, (now + 60) / 60));
  $('level').firstElementChild.style.transform = `scaleX(${share})`;
  // A screen reader asks when it wants to know; a change every 80 ms would only be noise.
  if (performance.now() - reader > 1000) {
    reader = performance.now();
    $('level').setAttribute('aria-valuenow', String(Math.round(Math.max(-60, now))));
    $('level').setAttribute('aria-valuetext', now < -45 ? 'quiet' : now < -6 ? 'speech' : 'too loud');
  }
}

function draw() {
  if (!wanted) return;
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const passed = calm ? 0 : Math.min(0.25, (performance.now() - latest.at_ms) / 1000);
  lanes.draw($('lanes'), latest.time_s + passed - (calm ? 0 : 0.1));
  const shown = lanes.shown.length, all = lanes.words.length;
  $('lanes-note').hidden = shown === all;
  $('lanes-note').textContent = `The ${shown} likeliest of ${all} words.`;
  if (calm) setTimeout(draw, 250);
  else requestAnimationFrame(draw);
}

function addEvent({id, word, score}) {
  const time = new Date().toLocaleTimeString([], {hour: '2-digit', minute: '2-digit', second: '2-digit'});
  const outcome = element('p', {className: 'verdict', role: 'status'});
  const said = element('select', {'aria-label': `I said another word than ${word}`});
  fill(said);
  said.onchange = () => put(item, id, said);
  const wrong = element('button', {type: 'button', className: 'small', onclick: () => put(item, id, null)},
    'That was wrong');
  const item = element('li', {id: `event-${id}`},
    element('span', {className: 'heard'}, word),
    element('span', {className: 'soft small'}, `${time}, score ${score.toFixed(2)}`),
    element('span', {className: 'tools'}, wrong, said), outcome);
  $('events').prepend(item);
  while ($('events').children.length > MOST_EVENTS) $('events').lastElementChild.remove();
  say(`Heard ${word}`);
  showEmpty();
}

function fill(said) {
  said.replaceChildren(element('option', {value: ''}, 'I said…'),
    ...state.words.map(({word}) => element('option', {value: word}, word)),
    element('option', {value: '\n'}, 'a new word…'));
}

async function put(item, id, said) {
  let word = said?.value ?? null;
  if (said && !word) return;
  if (word === '\n') {
    const answer = await ask({title: 'What did you say?', label: 'Word', choices: [['yes', 'Learn it', 'primary']]});
    said.value = '';
    if (!answer.choice || !answer.text) return;
    word = answer.text;
  }
  tell(item.querySelector('.verdict'), 'Learning…', 'busy');
  item.querySelector('.tools').hidden = true;
  wish({type: 'correct', id, word});
}

function corrected({id, word, error, warnings = []}) {
  const item = $(`event-${id}`);
  if (!item) return;
  tell(item.querySelector('.verdict'), error ? sentence(error)
    : word === null ? 'Noted: that was none of your words.'
    : sentences(`Learned as ${quoted(word)}.`, warnings),
  error || warnings.length ? 'bad' : 'good');
  // What failed may be tried again.
  item.querySelector('.tools').hidden = !error;
}

function expire(left) {
  for (const item of $('events').children) {
    const id = Number(item.id.slice('event-'.length));
    if (!left.includes(id)) item.querySelector('.tools').hidden = true;
  }
}

function wish(message) {
  try { line.wish(message); } catch (error) { tell($('listen-status'), error.message, 'bad'); }
}
