// Teach by text: a voice on the computer says the word, and each clip can be heard and dropped.

import {decodeAudio, get, postJson} from './api.js';
import {RATE} from './microphone.js';
import {$, announce, attempt, element, redraw, showStatus, tool} from './page.js';
import * as takes from './takes.js';
import {checkWord, wordInField} from './teach.js';
import {number, texts, withIssues} from './texts.js';
import {picture} from './wave.js';

// Clips that were spoken since the page was opened, by the numbers of their takes.
const spoken = new Map();
let inModel = [];
let busy = false;
let languages = [];
// The name of a language in the language of the page.
const names = new Intl.DisplayNames([document.documentElement.lang], {type: 'language'});

export function setUp(socket) {
  socket.addEventListener('speaking', ({detail: {done, of}}) => {
    $('type-progress').max = of;
    $('type-progress').value = done;
    if (busy) showStatus($('type-status'), texts.speaking(done, of), 'busy');
  });
  $('type-it').onclick = () => toggle($('typing').hidden);
  $('type-language').onchange = showVoices;
  $('typing').onsubmit = event => { event.preventDefault(); say(); };
  $('type-drop').onclick = dropAll;
  $('word').addEventListener('input', draw);
  draw();
}

export function show({history}) {
  inModel = history.takes;
  draw();
}

async function toggle(open) {
  $('typing').hidden = !open;
  $('type-it').setAttribute('aria-expanded', String(open));
  draw();
  if (open && !languages.length) await showVoices();
}

function nameOf(language) {
  try { return names.of(language) ?? language; } catch { return language; }
}

// The language of the page, as the voices call it.
function preferred() {
  const wanted = navigator.language.toLowerCase(), base = wanted.split('-')[0];
  return [wanted, base].find(name => languages.includes(name)) ?? 'en-us';
}

// Ask which voices speak the chosen language here.
async function showVoices() {
  try {
    const chosen = $('type-language').value;
    let found = await get(`api/voices?language=${encodeURIComponent(chosen || 'en-us')}`);
    if (!chosen) {
      ({languages} = found);
      const options = languages.map(value => element('option', {value}, nameOf(value)));
      options.sort((one, two) => one.textContent.localeCompare(two.textContent));
      $('type-language').replaceChildren(...options);
      $('type-language').value = preferred();
      found = await get(`api/voices?language=${encodeURIComponent($('type-language').value)}`);
    }
    const here = found.voices.filter(({missing}) => missing === null);
    $('type-voice').replaceChildren(...here.map(({name}) => element('option', {value: name}, name)));
    $('type-voice').value = found.best ?? '';
    showStatus($('type-status'), found.best ? '' : texts.noVoice(found.missing), 'bad');
    $('type-say').hidden = $('type-voice').disabled = found.best === null;
  } catch (error) {
    showStatus($('type-status'), error.message, 'bad');
  }
}

async function say() {
  if (busy) return;
  const word = wordInField();
  try { checkWord(word); } catch (error) {
    showStatus($('type-status'), error.message, 'bad');
    $('word').focus();
    return;
  }
  const language = $('type-language').value, phonemes = $('type-phonemes').value.trim();
  setBusy(true);
  try {
    const answer = await postJson('api/say', {word, language, voice: $('type-voice').value || null, phonemes});
    for (const {take, speaker, audio} of answer.clips) spoken.set(take, {speaker, audio: decodeAudio(audio)});
    // What to change, where it is wrong.
    $('type-phonemes').placeholder = answer.phonemes;
    const done = texts.spokenNow(word, answer.clips.length, answer.voice);
    const doubts = answer.native ? done : `${done} ${texts.notNative(answer.voice, nameOf(language))}`;
    const good = answer.native && !answer.issues.length;
    showStatus($('type-status'), withIssues(doubts, answer.issues), good ? 'good' : 'bad');
    announce(done);
    $('next-actions').hidden = false;
  } catch (error) {
    showStatus($('type-status'), error.message, 'bad');
  }
  setBusy(false);
}

function setBusy(now) {
  busy = now;
  $('type-progress').hidden = !now;
  $('type-progress').removeAttribute('value');
  $('type-say').setAttribute('aria-disabled', String(now));
  if (now) showStatus($('type-status'), texts.speakingSoon, 'busy');
  draw();
}

// Clips of the word in the field that are in the model.
const clips = () => inModel.filter(({id, word}) => spoken.has(id) && word === wordInField());

async function dropAll() {
  for (const {id} of clips()) if (await attempt(() => takes.remove(id), texts.removed) === null) return;
}

function draw() {
  const shown = $('typing').hidden ? [] : clips();
  $('type-say').textContent = shown.length ? texts.sayMore : texts.sayIt;
  $('type-drop').hidden = !shown.length || busy;
  $('type-drop').textContent = texts.dropAll;
  redraw(() => $('type-clips').replaceChildren(...shown.map(row)), () => $('type-say'));
}

function row({id}) {
  const {speaker, audio} = spoken.get(id);
  return element('li', {},
    tool('play', texts.playClip(speaker), `play-clip/${id}`, () => takes.play(audio)),
    element('span', {className: 'what'},
      element('span', {className: 'take-title'}, element('strong', {}, speaker), ' ',
        element('span', {className: 'soft small'}, texts.seconds(number(audio.length / RATE, 1)))),
      picture(audio, texts.clipWaveform(speaker))),
    element('span', {className: 'tools'},
      tool('bin', texts.dropClip(speaker), `drop-clip/${id}`, () => attempt(() => takes.remove(id), texts.removed))));
}
