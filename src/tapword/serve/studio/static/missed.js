// A word that was missed: show the sound that was taken for it, ask where it is doubtful, and offer
// undo. The sound is held until the next one, or until the person is done with it.

import {$, element, icon, showStatus, tool} from './page.js';
import * as takes from './takes.js';
import {errorText, number, texts, withIssues} from './texts.js';
import {picture} from './wave.js';

let socket = null;
// The last sound: {word, audio, seconds, issues}.
let sound = null;

export function setUp(theSocket) {
  socket = theSocket;
  $('missed').onsubmit = event => {
    event.preventDefault();
    const word = $('missed-word').value;
    if (!word) return;
    clear();
    showStatus($('missed-status'), texts.learning, 'busy');
    send({type: 'missed', word});
    $('missed-word').value = '';
    $('missed-word').focus({preventScroll: true});
    showButton();
  };
  $('missed-word').onchange = showButton;
  socket.addEventListener('missed', ({detail}) => {
    if (detail.error) { showStatus($('missed-status'), errorText(detail), 'bad'); return; }
    sound = detail;
    showSound();
    if (detail.take === null) askAbout();
    else learned(detail.take);
  });
  socket.addEventListener('keep_missed', ({detail}) => {
    if (detail.error || !sound) { clear(); showStatus($('missed-status'), detail.error ? errorText(detail) : '', 'bad'); return; }
    learned(detail.take);
  });
}

export function show(words) {
  const chosen = $('missed-word').value;
  $('missed-word').replaceChildren(element('option', {value: ''}, texts.whichWord),
    ...words.map(word => element('option', {value: word}, word)));
  if (words.includes(chosen)) $('missed-word').value = chosen;
  showButton();
}

export function setListening(listening) { $('missed').hidden = !listening; }

// Nothing is preselected, so that no careless click teaches a word.
function showButton() { $('missed-button').disabled = !$('missed-word').value; }

function send(command) {
  try { socket.send(command); } catch (error) { showStatus($('missed-status'), error.message, 'bad'); }
}

function showSound() {
  const {audio, seconds, ago_s} = sound, text = texts.missedSound(number(seconds, 1), number(ago_s, 1));
  $('missed-sound').replaceChildren(
    tool('play', texts.playMissed, 'play-missed', () => takes.play(audio)),
    element('span', {className: 'what'}, element('span', {className: 'soft small'}, text), picture(audio, text)));
  $('missed-found').hidden = false;
}

function clear() {
  sound = null;
  $('missed-found').hidden = true;
  $('missed-sound').replaceChildren();
  $('missed-actions').replaceChildren();
  showStatus($('missed-status'), '');
}

const button = (text, look, onclick, ...more) => element('button', {type: 'button', className: look, onclick}, ...more, text);

function askAbout() {
  const refused = sound.issues.some(({severity}) => severity === 'refuse');
  showStatus($('missed-status'), withIssues(texts.missedDoubtful, sound.issues), 'bad');
  $('missed-actions').replaceChildren(
    ...(refused ? [] : [button(texts.missedKeep(sound.word), 'small', () => {
      showStatus($('missed-status'), texts.learning, 'busy');
      $('missed-actions').replaceChildren();
      send({type: 'keep_missed', word: sound.word});
    })]),
    button(texts.missedDrop, 'small', () => {
      send({type: 'drop_missed'});
      done(texts.missedDropped);
    }));
  $('missed-actions').firstElementChild.focus({preventScroll: true});
}

function learned(take) {
  const {word, audio, seconds, issues} = sound;
  takes.remember(take, audio, seconds, [withIssues('', issues)]);
  showStatus($('missed-status'), withIssues(texts.learnedAgain(word), issues), issues.length ? 'bad' : 'good');
  const undo = async () => {
    try {
      await takes.remove(take);
      done(texts.takenBack);
    } catch (error) {
      done(error.message, 'bad');
    }
  };
  $('missed-actions').replaceChildren(
    ...(takes.canRemove(take) ? [button(texts.undo, 'small', undo, icon('undo'))] : []),
    button(texts.missedClose, 'small quiet', () => done('')));
}

// The sound is needed no more.
function done(text, kind = 'good') {
  clear();
  showStatus($('missed-status'), text, text ? kind : '');
  $('missed-word').focus({preventScroll: true});
}
