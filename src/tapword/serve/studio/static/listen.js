// Listen live: level, scores, events, and putting them right.

import {Lanes} from './lanes.js';
import {level, use} from './microphone.js';
import {$, ask, attempt, element, icon, say, tell, tool} from './page.js';
import * as takes from './takes.js';
import {language, number, sentence, sentences, texts} from './texts.js';

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
    if (!$('missed-word').value) return;
    tell($('listen-status'), texts.learning, 'busy');
    wish({type: 'missed', word: $('missed-word').value});
    $('missed-word').value = '';
    $('missed-word').focus({preventScroll: true});
    showMissed();
  };
  $('missed-word').onchange = showMissed;
  line.addEventListener('scores', ({detail}) => {
    latest = {time_s: detail.time_s - BEHIND_S, at_ms: performance.now()};
    lanes.add(latest.time_s, detail.scores);
  });
  line.addEventListener('thresholds', ({detail}) => lanes.setThresholds(detail.thresholds));
  line.addEventListener('event', ({detail}) => { lanes.mark(detail); addEvent(detail); });
  line.addEventListener('near', ({detail}) => {
    lanes.mark(detail);
    tell($('listen-status'), texts.nearly(detail.word, number(detail.score, 2), number(detail.threshold, 2)));
  });
  line.addEventListener('listen', ({detail}) => {
    if (detail.error) { stop(); tell($('listen-status'), sentence(detail.error), 'bad'); return; }
    latest = {time_s: 0, at_ms: performance.now()};
    lanes.reset(state.words.map(({word}) => word), detail.thresholds);
  });
  line.addEventListener('missed', ({detail: {word, error, take, sound, warnings}}) => {
    if (!error) takes.remember(take, sound, warnings);
    tell($('listen-status'), error ? sentence(error) : sentences(texts.learnedAgain(word), warnings),
      error || warnings.length ? 'bad' : 'good');
  });
  line.addEventListener('hear', ({detail: {id, error, sound}}) => {
    const item = $(`event-${id}`);
    if (error && item) tell(item.querySelector('.verdict'), sentence(error), 'bad');
    if (error || !item) return;
    item.sound = sound;
    takes.play(item.sound);
  });
  line.addEventListener('correct', ({detail}) => corrected(detail));
  line.addEventListener('correctable', ({detail}) => expire(detail.events));
  line.addEventListener('open', () => { expire([]); if (wanted) line.wish({type: 'listen'}); });
  addEventListener('microphone-lost', () => {
    if (!wanted) return;
    stop();
    tell($('listen-status'), texts.gone, 'bad');
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
  $('missed-word').replaceChildren(element('option', {value: ''}, texts.whichWord),
    ...words.map(word => element('option', {value: word}, word)));
  if (words.includes(chosen)) $('missed-word').value = chosen;
  showMissed();
  $('events').querySelectorAll('select').forEach(fill);
  showEmpty();
}

// Nothing is chosen beforehand, so that no careless click teaches a word.
function showMissed() { $('missed-button').disabled = !$('missed-word').value; }

function showEmpty() {
  const quiet = !wanted && !$('events').children.length;
  $('listen-empty').hidden = !quiet;
  $('listen-empty').textContent = !state?.words.length
    ? texts.nothingToHear : texts.pressAndSay;
  $('events-title').hidden = !$('events').children.length;
}

function setButton() {
  const button = $('listen-button');
  button.setAttribute('aria-pressed', String(wanted));
  button.className = wanted ? 'live' : 'primary';
  button.replaceChildren(icon(wanted ? 'stop' : 'mic'),
    element('span', {}, wanted ? texts.stopListening : texts.start));
  for (const id of ['level-row', 'lanes', 'missed']) $(id).hidden = !wanted;
  $('lanes-note').hidden = true;
  showEmpty();
}

async function start() {
  tell($('listen-status'), texts.openingMicrophone, 'busy');
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
  say(texts.listeningNow);
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
  say(texts.stopped);
}

function hear(chunk) {
  line.sound(chunk);
  const now = level(chunk), share = Math.max(0, Math.min(1, (now + 60) / 60));
  $('level').firstElementChild.style.transform = `scaleX(${share})`;
  // A screen reader asks when it wants to know; a change every 80 ms would only be noise.
  if (performance.now() - reader > 1000) {
    reader = performance.now();
    $('level').setAttribute('aria-valuenow', String(Math.round(Math.max(-60, now))));
    $('level').setAttribute('aria-valuetext', texts.levels[now < -45 ? 'quiet' : now < -6 ? 'speech' : 'loud']);
  }
}

function draw() {
  if (!wanted) return;
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const passed = calm ? 0 : Math.min(0.25, (performance.now() - latest.at_ms) / 1000);
  lanes.draw($('lanes'), latest.time_s + passed - (calm ? 0 : 0.1));
  const shown = lanes.shown.length, all = lanes.words.length;
  $('lanes-note').hidden = false;
  $('lanes-note').textContent = [...(shown < all ? [texts.likeliest(shown, all)] : []), texts.lanesNote].join(' ');
  if (calm) setTimeout(draw, 250);
  else requestAnimationFrame(draw);
}

function addEvent({id, word, score}) {
  const time = new Date().toLocaleTimeString(language, {hour: '2-digit', minute: '2-digit', second: '2-digit'});
  const outcome = element('p', {className: 'verdict', role: 'status'});
  const said = element('select', {'aria-label': texts.saidOther(word)});
  fill(said);
  // Choosing alone teaches nothing: on a keyboard every arrow would choose.
  const teach = element('button', {type: 'button', className: 'small', disabled: true,
    onclick: () => put(item, id, said)}, texts.teachIt);
  said.onchange = () => { teach.disabled = !said.value; };
  const item = element('li', {id: `event-${id}`},
    element('span', {className: 'heard'}, word),
    element('span', {className: 'soft small'}, texts.eventText(time, number(score, 2))),
    element('span', {className: 'tools'},
      tool('play', texts.hearEvent(word), `hear-event/${id}`, () => hearAgain(item, id)),
      element('button', {type: 'button', className: 'small', onclick: () => put(item, id, null)}, texts.wrong),
      said, teach), outcome);
  $('events').prepend(item);
  while ($('events').children.length > MOST_EVENTS) $('events').lastElementChild.remove();
  say(texts.heardWord(word));
  showEmpty();
}

function fill(said) {
  const chosen = said.value;
  said.replaceChildren(element('option', {value: ''}, texts.said),
    ...state.words.map(({word}) => element('option', {value: word}, word)),
    element('option', {value: '\n'}, texts.newWord));
  if ([...said.options].some(({value}) => value === chosen)) said.value = chosen;
}

function hearAgain(item, id) {
  if (item.sound) takes.play(item.sound);
  else wish({type: 'hear', id});
}

async function put(item, id, said) {
  let word = said?.value ?? null;
  if (word === '\n') {
    const answer = await ask({title: texts.whatSaid, label: texts.word, choices: [['yes', texts.learnIt, 'primary']]});
    if (!answer.choice || !answer.text) return;
    word = answer.text;
  }
  tell(item.querySelector('.verdict'), texts.learning, 'busy');
  wish({type: 'correct', id, word});
}

function corrected({id, word, error, take, sound, warnings = []}) {
  const item = $(`event-${id}`);
  if (!item) return;
  const outcome = item.querySelector('.verdict');
  // What failed may be tried again.
  if (error) { tell(outcome, sentence(error), 'bad'); return; }
  item.sound = sound;
  takes.remember(take, item.sound, warnings);
  tell(outcome, word === null ? texts.none : sentences(texts.learnedAs(word), warnings), warnings.length ? 'bad' : 'good');
  const heard = item.querySelector('.heard').textContent;
  const back = element('button', {type: 'button', className: 'small', 'aria-label': texts.undoEvent(heard),
    onclick: async () => {
      if (await attempt(() => takes.remove(take))) tell(outcome, texts.takenBack, 'good');
      else showTools(item, true);
      item.querySelector('.tools').firstElementChild.focus({preventScroll: true});
    }}, icon('undo'), texts.undo);
  const focused = item.querySelector('.tools').contains(document.activeElement);
  showTools(item, true);
  if (takes.canRemove(take)) outcome.append(back);
  if (focused) (takes.canRemove(take) ? back : item.querySelector('.tools').firstElementChild).focus({preventScroll: true});
}

// Of an event that was put right, or whose sound the studio let go, what this page holds can be heard.
function showTools(item, done) {
  const [play, ...others] = item.querySelector('.tools').children;
  for (const other of others) other.hidden = done;
  play.hidden = done && !item.sound;
}

function expire(left) {
  for (const item of $('events').children) {
    const id = Number(item.id.slice('event-'.length));
    if (left.includes(id)) continue;
    const focused = item.querySelector('.tools').contains(document.activeElement);
    showTools(item, true);
    if (focused && !item.sound) $('listen-button').focus({preventScroll: true});
  }
}

function wish(message) {
  try { line.wish(message); } catch (error) { tell($('listen-status'), error.message, 'bad'); }
}
