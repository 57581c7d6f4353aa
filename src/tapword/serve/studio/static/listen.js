// Listen live: level, scores, events and their correction.

import {Lanes} from './lanes.js';
import * as meter from './meter.js';
import {use} from './microphone.js';
import * as missed from './missed.js';
import {$, announce, ask, attempt, element, icon, showStatus, tool} from './page.js';
import * as takes from './takes.js';
import {errorText, locale, number, texts, withIssues} from './texts.js';

const MAX_EVENTS = 8, MAX_EXPECTED = 30;
// A score is about half a second old: the detector waits for the end of a word.
const DELAY_S = 0.5;

const lanes = new Lanes();
let socket = null;
let state = null;
let release = null;
let listening = false;
// Time of the newest scores, in the stream and in the page; the plot moves smoothly after it.
let latest = {time_s: 0, at_ms: 0};

export function setUp(theSocket) {
  socket = theSocket;
  $('listen-button').onclick = () => listening ? stop() : start();
  missed.setUp(socket);
  meter.setUp();
  socket.addEventListener('scores', ({detail}) => {
    latest = {time_s: detail.time_s - DELAY_S, at_ms: performance.now()};
    lanes.add(latest.time_s, detail.scores);
  });
  socket.addEventListener('thresholds', ({detail}) => lanes.setThresholds(detail.thresholds));
  socket.addEventListener('event', ({detail}) => { lanes.mark(detail); addEvent(detail); });
  socket.addEventListener('near', ({detail}) => {
    lanes.mark(detail);
    showStatus($('listen-status'), texts.nearly(detail.word, detail.confidence, number(detail.score, 2), number(detail.threshold, 2)));
  });
  socket.addEventListener('listen', ({detail}) => {
    if (detail.error) { stop(); showStatus($('listen-status'), errorText(detail), 'bad'); return; }
    latest = {time_s: 0, at_ms: performance.now()};
    lanes.reset(state.words.map(({word}) => word), detail.thresholds);
  });
  socket.addEventListener('play', ({detail}) => {
    const item = $(`event-${detail.id}`);
    if (!item) return;
    if (detail.error) { showStatus(item.querySelector('.verdict'), errorText(detail), 'bad'); return; }
    item.audio = detail.audio;
    takes.play(item.audio);
  });
  socket.addEventListener('correct', ({detail}) => corrected(detail));
  socket.addEventListener('correctable', ({detail}) => expire(detail.events));
  socket.addEventListener('open', () => { expire([]); if (listening) socket.send({type: 'listen'}); });
  addEventListener('microphone-lost', () => {
    if (!listening) return;
    stop();
    showStatus($('listen-status'), texts.gone, 'bad');
  });
}

export function show(model) {
  state = model;
  const words = model.words.map(({word}) => word);
  const none = !words.length;
  $('listen-button').disabled = none;
  if (none && listening) stop();
  lanes.setWords(words);
  missed.show(words);
  const more = model.words.length - MAX_EXPECTED;
  $('expected').replaceChildren(...model.words.slice(0, MAX_EXPECTED).map(({word, count, synthetic}) => element('li', {},
    word, ...(count < takes.ENOUGH && !synthetic
      ? [' ', element('span', {className: 'soft small'}, texts.ofEnough(count, takes.ENOUGH))] : []))),
  ...(more > 0 ? [element('li', {}, texts.moreFiles(more))] : []));
  $('events').querySelectorAll('select').forEach(fill);
  showEmpty();
}

// Before anybody listens: which words would be heard.
function showEmpty() {
  const none = !state?.words.length;
  $('expected-box').hidden = listening;
  $('expected').hidden = none;
  $('listen-empty').textContent = none ? texts.nothingToHear : texts.pressAndSay;
  $('events-title').hidden = !$('events').children.length;
}

function setButton() {
  const button = $('listen-button');
  button.setAttribute('aria-pressed', String(listening));
  button.className = listening ? 'live' : 'primary';
  button.replaceChildren(icon(listening ? 'stop' : 'mic'),
    element('span', {}, listening ? texts.stopListening : texts.start));
  $('lanes').hidden = !listening;
  missed.setListening(listening);
  $('meter-test').hidden = listening;
  $('lanes-note').hidden = true;
  showEmpty();
}

export async function tryNow() {
  $('listen').scrollIntoView({block: 'start'});
  $('listen-button').focus({preventScroll: true});
  if (!listening) await start();
}

async function start() {
  meter.stop();
  showStatus($('listen-status'), texts.openingMicrophone, 'busy');
  try {
    listening = true;
    socket.send({type: 'listen'});
    release = await use(onChunk);
  } catch (error) {
    stop();
    showStatus($('listen-status'), error.message, 'bad');
    return;
  }
  showStatus($('listen-status'), '');
  announce(texts.listeningNow);
  setButton();
  draw();
}

function stop() {
  listening = false;
  release?.();
  release = null;
  if (socket.open) socket.send({type: 'stop'});
  setButton();
  showStatus($('listen-status'), '');
  announce(texts.stopped);
}

const onChunk = chunk => socket.sendAudio(chunk);

function draw() {
  if (!listening) return;
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const passed = calm ? 0 : Math.min(0.25, (performance.now() - latest.at_ms) / 1000);
  lanes.draw($('lanes'), latest.time_s + passed - (calm ? 0 : 0.1));
  const shown = lanes.shown.length, all = lanes.words.length;
  $('lanes-note').hidden = false;
  $('lanes-note').textContent = [...(shown < all ? [texts.likeliest(shown, all)] : []), texts.lanesNote].join(' ');
  if (calm) setTimeout(draw, 250);
  else requestAnimationFrame(draw);
}

function addEvent({id, word, score, confidence}) {
  const time = new Date().toLocaleTimeString(locale, {hour: '2-digit', minute: '2-digit', second: '2-digit'});
  const outcome = element('p', {className: 'verdict', role: 'status'});
  const said = element('select', {'aria-label': texts.saidOther(word)});
  fill(said);
  // Choosing alone teaches nothing: on a keyboard every arrow would choose.
  const teach = element('button', {type: 'button', className: 'small', disabled: true,
    onclick: () => correct(item, id, said)}, texts.teachIt);
  said.onchange = () => { teach.disabled = !said.value; };
  const item = element('li', {id: `event-${id}`},
    element('span', {className: 'heard'}, word),
    element('span', {className: 'soft small'}, texts.eventText(time, confidence, number(score, 2))),
    element('span', {className: 'tools'},
      tool('play', texts.playEvent(word), `play-event/${id}`, () => playEvent(item, id)),
      element('button', {type: 'button', className: 'small', onclick: () => correct(item, id, null)}, texts.wrong),
      said, teach), outcome);
  $('events').prepend(item);
  while ($('events').children.length > MAX_EVENTS) $('events').lastElementChild.remove();
  announce(texts.heardWord(word));
  showEmpty();
}

function fill(said) {
  const chosen = said.value;
  said.replaceChildren(element('option', {value: ''}, texts.said),
    ...state.words.map(({word}) => element('option', {value: word}, word)),
    element('option', {value: '\n'}, texts.newWord));
  if ([...said.options].some(({value}) => value === chosen)) said.value = chosen;
}

function playEvent(item, id) {
  if (item.audio) takes.play(item.audio);
  else send({type: 'play', id});
}

async function correct(item, id, said) {
  let word = said?.value ?? null;
  if (word === '\n') {
    const answer = await ask({title: texts.whatSaid, label: texts.word, choices: [['yes', texts.learnIt, 'primary']]});
    if (!answer.choice || !answer.text) return;
    word = answer.text;
  }
  showStatus(item.querySelector('.verdict'), texts.learning, 'busy');
  send({type: 'correct', id, word});
}

function corrected(answer) {
  const {id, word, take, audio, seconds, issues} = answer, item = $(`event-${id}`);
  if (!item) return;
  const outcome = item.querySelector('.verdict');
  // After an error the tools stay, to try again.
  if (answer.error) { showStatus(outcome, errorText(answer), 'bad'); return; }
  item.audio = audio;
  takes.remember(take, audio, seconds, [withIssues('', issues)]);
  showStatus(outcome, withIssues(word === null ? texts.none : texts.learnedAs(word), issues), issues.length ? 'bad' : 'good');
  const heard = item.querySelector('.heard').textContent;
  const back = element('button', {type: 'button', className: 'small', 'aria-label': texts.undoEvent(heard),
    onclick: async () => {
      if (await attempt(() => takes.remove(take))) showStatus(outcome, texts.takenBack, 'good');
      else showTools(item, true);
      item.querySelector('.tools').firstElementChild.focus({preventScroll: true});
    }}, icon('undo'), texts.undo);
  const focused = item.querySelector('.tools').contains(document.activeElement);
  showTools(item, true);
  if (takes.canRemove(take)) outcome.append(back);
  if (focused) (takes.canRemove(take) ? back : item.querySelector('.tools').firstElementChild).focus({preventScroll: true});
}

// An event that was corrected, or whose audio the studio dropped, can only be played, if the page has it.
function showTools(item, done) {
  const [play, ...others] = item.querySelector('.tools').children;
  for (const other of others) other.hidden = done;
  play.hidden = done && !item.audio;
}

function expire(left) {
  for (const item of $('events').children) {
    const id = Number(item.id.slice('event-'.length));
    if (left.includes(id)) continue;
    const focused = item.querySelector('.tools').contains(document.activeElement);
    showTools(item, true);
    if (focused && !item.audio) $('listen-button').focus({preventScroll: true});
  }
}

function send(command) {
  try { socket.send(command); } catch (error) { showStatus($('listen-status'), error.message, 'bad'); }
}
