// Calibration through a satellite: its button, and what its row shows while it runs and after it.

import {postJson} from './api.js';
import {ask, attempt, element} from './page.js';
import {errorText, number, texts} from './texts.js';

// What shows the state that an answer brings.
/** @type {(state: any) => void} */
let showState = () => {};

export function setUp(show) { showState = show; }

async function change(one, action) {
  const state = await attempt(() => postJson('api/home/calibrate', {id: one.id, action}));
  if (state) showState(state);
}

function small(text, key, action, options = {}) {
  const made = element('button', {type: 'button', className: 'small', onclick: action, ...options}, text);
  made.dataset.key = key;
  return made;
}

// The button that starts it; none where there is something to show in its place.
export function start(one, name) {
  if (one.calibration || !one.streaming) return [];
  const begin = async () => {
    const {choice} = await ask({title: texts.calibrateTitle(name), text: texts.calibrateText,
      choices: [['yes', texts.calibrateStart, 'primary']]});
    if (choice) await change(one, 'start');
  };
  return [small(texts.calibrate, `calibrate/${one.id}`, begin, {'aria-label': texts.ofWord(texts.calibrate, name)})];
}

export function progress(one) {
  const {calibration} = one;
  if (!calibration) return [];
  const {result, sound_s: sound, needed_s: needed} = calibration;
  const lines = [], buttons = [];
  if (!result) {
    lines.push(element('p', {}, texts.calibrating(sound, needed)),
      element('progress', {max: needed, value: Math.min(sound, needed), 'aria-label': texts.calibrate}));
    buttons.push(small(texts.calibrateFinish, `finish/${one.id}`, () => change(one, 'finish'), {disabled: sound < needed}),
      small(texts.cancel, `cancel/${one.id}`, () => change(one, 'end')));
  } else {
    if (result.error) lines.push(element('p', {}, errorText(result)));
    else {
      lines.push(element('p', {}, texts.calibrated(number(result.minutes, 1))),
        element('ul', {}, ...result.words.map(word => element('li', {}, texts.calibratedWord(word.word,
          number(word.before, 2), number(word.after, 2), word.alarms_before, word.alarms_after)))));
    }
    buttons.push(small(texts.ok, `dismiss/${one.id}`, () => change(one, 'end')));
  }
  return [element('div', {className: 'calibration'}, ...lines, element('div', {className: 'actions'}, ...buttons))];
}
