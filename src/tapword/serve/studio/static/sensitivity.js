// Sliders for the sensitivity of one word, or of all words (null).

import {postJson} from './api.js';
import {attempt, element} from './page.js';
import {number, texts} from './texts.js';

// How long a slider keeps its place after the studio answered: the model's new state may come later.
const SETTLE_MS = 500;

// Values that sliders were moved to, by word. Until the studio has them, the page shows these.
const wanted = new Map();
let redraw = () => {};

export function setUp(theRedraw) { redraw = theRedraw; }

export function slider(word, value) {
  const name = word ?? texts.allWords, shown = wanted.get(word) ?? value;
  const input = element('input', {
    type: 'range', min: 0, max: 1, step: 0.05, value: shown, 'data-key': `sensitivity/${word ?? '\n'}`,
    'aria-label': texts.sensitivity(name), 'aria-describedby': 'sensitivity-note',
  });
  const output = element('output', {className: 'soft small'}, number(shown, 2));
  input.oninput = () => { output.textContent = number(Number(input.value), 2); };
  input.onchange = () => move(word, value, Number(input.value));
  return element('span', {className: 'sensitivity'}, input, output,
    element('span', {className: 'ends soft', 'aria-hidden': 'true'},
      element('span', {}, texts.sliderLeft), element('span', {}, texts.sliderRight)));
}

// One request at a time, always with the latest value: two could arrive in the wrong order.
async function move(word, before, value) {
  const moving = wanted.has(word);
  wanted.set(word, value);
  if (moving) return;
  let sent, done;
  do {
    sent = wanted.get(word);
    const text = (sent > before ? texts.fewerMisses : texts.fewerAlarms)(word ?? texts.allWords);
    done = await attempt(() => postJson('api/sensitivity', {word, value: sent}), text) !== null;
    if (done) await new Promise(resolve => { setTimeout(resolve, SETTLE_MS); });
  } while (done && wanted.get(word) !== sent);
  wanted.delete(word);
  redraw();
}
