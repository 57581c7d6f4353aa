// The satellites of a home: their levels, one of them as the microphone, and what they heard.

import {decodeAudio, get, postJson} from './api.js';
import * as calibration from './calibration.js';
import {addSource} from './microphone.js';
import * as microphones from './microphones.js';
import {$, announce, ask, attempt, element, icon, redraw, showStatus, tool} from './page.js';
import * as takes from './takes.js';
import {errorText, locale, number, texts, withIssues} from './texts.js';

// Identifiers of satellites begin with this among the microphones.
const PREFIX = 'satellite:';
const SILENT_MS = 3000, SHOWN = 12;

let socket = null;
let words = [];
let home = null;
// Rows of the lists, by what they show: a row that did not change stays, with what is chosen in it.
const rows = new Map();
let asking = false, asked = false;
let shown = SHOWN;
// What takes the chunks of the satellite in use.
let onSound = null;
// Ends the wait for the answer to the choice of a satellite.
let answered = null;

export function setUp(theSocket) {
  socket = theSocket;
  socket.addEventListener('home', refresh);
  socket.addEventListener('levels', ({detail}) => showLevels(detail.levels));
  socket.addEventListener('sound', ({detail}) => onSound?.(detail));
  // The program could not send all of it.
  socket.addEventListener('lost', () => { if (onSound && socket.open) socket.send({type: 'gap'}); });
  socket.addEventListener('satellite', ({detail}) => answered?.(detail));
  socket.addEventListener('closed', lose);
  addEventListener('microphone-chosen', show);
  addSource(PREFIX, open);
  calibration.setUp(showState);
  $('keep-sound').onchange = () => change('api/home/sound', {on: $('keep-sound').checked});
  $('entries-more').onclick = () => { shown += 4 * SHOWN; showEntries(); };
}

export function show(model = null) {
  if (model?.words) words = model.words.map(({word}) => word);
  // The undo of a correction, and a word that was forgotten, change the list, too.
  if (home && model?.words) refresh();
  else if (home) showSatellites();
}

// A satellite as the microphone: open it, and give its chunks to `give`.
async function open(id, give) {
  if (!socket.open) throw new Error(texts.notConnected);
  let first;
  const sound = new Promise(resolve => { first = resolve; });
  const answer = new Promise(resolve => { answered = resolve; });
  onSound = chunk => { first(true); give(chunk); };
  try {
    socket.send({type: 'satellite', id: Number(id)});
    const told = await answer;
    if (told.error) throw new Error(errorText(told));
    const heard = await Promise.race([sound, new Promise(resolve => { setTimeout(resolve, SILENT_MS); })]);
    if (!heard) throw new Error(texts.satelliteSilent);
  } catch (error) {
    close();
    throw error;
  } finally {
    answered = null;
  }
  return close;
}

function close() {
  onSound = null;
  if (socket.open) socket.send({type: 'satellite', id: null});
}

function lose() {
  answered?.({error: texts.notConnected});
  if (!onSound) return;
  onSound = null;
  dispatchEvent(new Event('microphone-lost'));
}

// Ask for the state; once more if it changed while the answer was on its way.
async function refresh() {
  if (asking) { asked = true; return; }
  asking = true;
  try {
    do {
      asked = false;
      showState(await get('api/home'));
    } while (asked);
  } catch {
    // The page says that the program is away.
  } finally {
    asking = false;
  }
}

function showState(state) {
  const first = home === null;
  home = state;
  const known = new Set([...home.entries.map(({id}) => `entry/${id}`), ...home.satellites.map(({id}) => `satellite/${id}`)]);
  for (const key of rows.keys()) if (!known.has(key)) rows.delete(key);
  $('home').hidden = $('home-link').hidden = false;
  microphones.setOthers(home.satellites.map(one => [`${PREFIX}${one.id}`, nameOf(one)]));
  $('keep-sound').checked = home.keeps_sound;
  showSatellites();
  showEntries();
  if (first && location.hash === '#home') $('home').scrollIntoView();
}

const nameOf = one => one.name || texts.satelliteAt(one.address, one.place);

function showSatellites() {
  const streaming = home.satellites.filter(one => one.streaming).length;
  $('home-lead').textContent = [streaming ? texts.homeLead : texts.noSatellites,
    home.paused ? texts.paused : ''].filter(Boolean).join(' ');
  redraw(() => $('satellites').replaceChildren(...home.satellites.map(one => kept('satellite', one, row, microphones.chosen()))), () => $('home-title'));
}

// The row of an entry or a satellite, which also depends on `more`; drawn again if any of it changed.
function kept(kind, one, draw, ...more) {
  const key = `${kind}/${one.id}`, what = JSON.stringify([one, more]);
  if (rows.get(key)?.what !== what) rows.set(key, {what, row: draw(one)});
  return rows.get(key).row;
}

function row(one) {
  const id = `${PREFIX}${one.id}`, used = microphones.chosen() === id, name = nameOf(one);
  const meter = element('div', {className: 'level', role: 'meter', id: `level-${one.id}`, 'aria-label': texts.levelOf(name),
    'aria-valuemin': '-60', 'aria-valuemax': '0', 'aria-valuenow': '-60'}, element('div'));
  const notes = [
    one.streaming ? '' : texts.satelliteQuiet,
    one.held && !one.calibration ? texts.satelliteHeld : '',
    one.latency_ms === null ? '' : texts.latency(one.latency_ms),
    one.used ? texts.soundUsed : one.streaming ? texts.soundUnused : '',
  ].filter(Boolean).join(' ');
  const label = used ? texts.usedSatellite : texts.useSatellite;
  const choose = element('button', {type: 'button', className: 'small', 'aria-pressed': String(used),
    'aria-label': texts.ofWord(label, name), onclick: () => microphones.choose(used ? '' : id)}, label);
  choose.dataset.key = `use/${one.id}`;
  const pen = tool('pen', texts.ofWord(texts.rename, name), `name/${one.id}`, () => rename(one));
  return element('li', {}, element('span', {className: 'name'}, element('span', {}, name), pen),
    element('span', {className: 'tools'}, ...calibration.start(one, name), choose),
    meter, element('span', {className: 'note soft small'}, notes), ...calibration.progress(one));
}

function showLevels(levels) {
  for (const one of home?.satellites ?? []) {
    const meter = $(`level-${one.id}`), level = levels[one.id] ?? -60;
    if (!meter) continue;
    meter.firstElementChild.style.transform = `scaleX(${Math.max(0, Math.min(1, (level + 60) / 60))})`;
    meter.setAttribute('aria-valuenow', String(Math.round(Math.max(-60, Math.min(0, level)))));
  }
}

async function rename(one) {
  const {choice, text} = await ask({title: texts.renameTitle(nameOf(one)), text: texts.nameHint, label: texts.newName,
    value: one.name, choices: [['yes', texts.rename, 'primary']]});
  if (choice) await change('api/home/name', {id: one.id, name: text});
}

async function change(path, value) {
  const state = await attempt(() => postJson(path, value));
  if (state) showState(state);
  return state;
}

// What happened.

function showEntries() {
  const all = [...home.entries].reverse();
  $('entries-lead').textContent = all.length ? texts.entriesLead : texts.noEntries;
  $('entries-more').hidden = all.length <= shown;
  const names = home.satellites.map(nameOf);
  redraw(() => $('entries').replaceChildren(...all.slice(0, shown).map(one => kept('entry', one, entryRow, words, names))), () => $('home-title'));
}

const RECENT_MS = 12 * 3600 * 1000;

function entryRow(entry) {
  const at = new Date(1000 * entry.at_s);
  /** @type {Intl.DateTimeFormatOptions} */
  const day = Date.now() - at.getTime() > RECENT_MS ? {weekday: 'short'} : {};
  const time = at.toLocaleString(locale, {...day, hour: '2-digit', minute: '2-digit', second: '2-digit'});
  const from = home.satellites.find(({id}) => id === entry.satellite);
  const what = [time, from ? nameOf(from) : '', entry.said ? texts.entrySaid : texts.entryNear].filter(Boolean).join(', ');
  const text = entry.confidence === null
    ? `${what}, ${texts.scores(number(entry.score, 2), number(entry.threshold, 2))}`
    : texts.eventText(what, entry.confidence, number(entry.score, 2));
  const tools = element('span', {className: 'tools'});
  if (entry.sound) tools.append(tool('play', texts.playEvent(entry.word), `sound/${entry.id}`, () => play(entry)));
  if (!entry.taught) tools.append(...corrections(entry));
  const taught = entry.taught && (entry.taught.negative ? texts.notThisWord(entry.taught.word) : texts.learnedAs(entry.taught.word));
  return element('li', {className: entry.said ? '' : 'near'},
    element('span', {className: 'heard'}, entry.word),
    element('span', {className: 'soft small'}, text), tools,
    taught ? element('p', {className: 'verdict good'}, icon('good'), element('span', {}, taught)) : '');
}

function corrections(entry) {
  const wrong = element('button', {type: 'button', className: 'small', onclick: () => correct(entry, null)}, texts.wrong);
  wrong.dataset.key = `wrong/${entry.id}`;
  const which = element('select', {'aria-label': texts.missedOther(entry.word)},
    element('option', {value: ''}, texts.itWas),
    ...words.map(word => element('option', {value: word}, word)), element('option', {value: '\n'}, texts.newWord));
  // Choosing alone teaches nothing: on a keyboard every arrow would choose.
  const teach = element('button', {type: 'button', className: 'small', disabled: true,
    onclick: () => correct(entry, which.value)}, texts.teachIt);
  which.dataset.key = `which/${entry.id}`;
  which.onchange = () => { teach.disabled = !which.value; };
  if (!entry.said) which.value = entry.word;
  teach.disabled = !which.value;
  teach.dataset.key = `teach/${entry.id}`;
  return [wrong, which, teach];
}

async function correct(entry, given) {
  let word = given;
  if (word === '\n') {
    const answer = await ask({title: texts.whatSaid, label: texts.word, choices: [['yes', texts.learnIt, 'primary']]});
    if (!answer.choice || !answer.text) return;
    word = answer.text;
  }
  showStatus($('home-status'), texts.learning, 'busy');
  const state = await change('api/home/correct', {id: entry.id, word});
  if (!state) { showStatus($('home-status'), ''); return; }
  showStatus($('home-status'), withIssues(word === null ? texts.none : texts.learnedAs(word), state.issues), 'good');
  announce($('home-status').textContent);
}

async function play(entry) {
  const answer = await attempt(() => get(`api/home/sound/${entry.id}`));
  if (answer) takes.play(decodeAudio(answer.audio));
}
