// The waveform of a take: bars around a middle line, the spoken part in full colour.

import {colours, element, prepare} from './page.js';

const BAR = 3, GAP = 2;

// A small waveform, as high as there is room; it draws itself wherever it is put.
export function picture(samples, label) {
  const canvas = element('canvas', {className: 'picture', role: 'img', 'aria-label': label});
  const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1);
  new ResizeObserver(() => { if (canvas.clientWidth) drawWave(canvas, samples, {loudest}); }).observe(canvas);
  return canvas;
}

export function drawWave(canvas, samples, {seconds = null, start = null, end = null, loudest = 32768} = {}) {
  const {pen, width, height} = prepare(canvas);
  const colour = colours(), middle = height / 2;
  const bars = Math.floor(width / (BAR + GAP));
  const length = Math.max(samples.length, seconds === null ? 1 : seconds * 16000);
  const per = length / bars;
  if (start !== null && end > start) {
    const left = start * 16000 / per * (BAR + GAP) - GAP, right = end * 16000 / per * (BAR + GAP) + GAP;
    pen.fillStyle = colour('tint');
    pen.beginPath();
    pen.roundRect(left, 4, right - left, height - 8, 8);
    pen.fill();
  }
  for (let bar = 0; bar < bars; bar++) {
    const from = Math.floor(bar * per), to = Math.min(samples.length, Math.floor((bar + 1) * per));
    let peak = 0;
    for (let i = from; i < to; i++) peak = Math.max(peak, Math.abs(samples[i]));
    // Hearing is logarithmic: a square root shows quiet speech, too.
    const tall = Math.max(from < samples.length ? 3 : 2, Math.sqrt(peak / loudest) * (height - Math.min(16, height / 8)));
    const at = bar * per / 16000;
    const spoken = start === null ? from < samples.length : at >= start - 0.02 && at <= end;
    pen.fillStyle = colour(spoken ? 'accent' : 'faint');
    pen.beginPath();
    pen.roundRect(bar * (BAR + GAP) + GAP / 2, middle - tall / 2, BAR, tall, BAR / 2);
    pen.fill();
  }
}
