// Scores of the last seconds: one lane per word, with its threshold dashed. Events are marked, near
// misses with a hollow mark.

import {colours, prepare} from './page.js';
import {number, texts} from './texts.js';

export const SECONDS = 10;
const MAX_LANES = 8, FOOT = 18;
// Beside each other on a wide page; on a narrow one, word and score are above their curve.
const WIDE = {lane: 46, text: 0, font: '13px system-ui, sans-serif'};
const NARROW = {lane: 84, text: 24, font: '16px system-ui, sans-serif'}, NARROW_BELOW = 480;

export class Lanes {
  #scores = new Map();
  #times = [];
  #marks = [];
  #thresholds = {};
  words = [];

  reset(words, thresholds) {
    this.words = words;
    this.#thresholds = thresholds;
    this.#scores = new Map(words.map(word => [word, []]));
    this.#times = [];
    this.#marks = [];
  }

  // Words may change while listening; the scores of the others stay.
  setWords(words) {
    this.#scores = new Map(words.map(word =>
      [word, this.#scores.get(word) ?? this.#times.map(() => null)]));
    this.words = words;
  }

  setThresholds(thresholds) { this.#thresholds = thresholds; }

  add(time, scores) {
    this.#times.push(time);
    for (const [word, row] of this.#scores) row.push(scores[word] ?? null);
    while (this.#times[0] < time - SECONDS - 0.5) {
      this.#times.shift();
      for (const row of this.#scores.values()) row.shift();
    }
    this.#marks = this.#marks.filter(mark => mark.end_s > time - SECONDS);
  }

  mark(event) { this.#marks.push(event); }

  // With too many words, those with the best recent scores, in their usual order.
  get shown() {
    if (this.words.length <= MAX_LANES) return this.words;
    const best = word => Math.max(0, ...this.#scores.get(word).map(score => score ?? 0));
    const chosen = new Set([...this.words].sort((a, b) => best(b) - best(a)).slice(0, MAX_LANES));
    return this.words.filter(word => chosen.has(word));
  }

  draw(canvas, now) {
    const shown = this.shown;
    const narrow = canvas.clientWidth < NARROW_BELOW, {lane: LANE, text, font} = narrow ? NARROW : WIDE;
    const height = shown.length * LANE + FOOT;
    canvas.style.height = `${height}px`;
    const {pen, width} = prepare(canvas, height);
    const colour = colours();
    pen.font = font;
    const widest = Math.max(0, ...shown.map(word => pen.measureText(word).width));
    const left = narrow ? 0 : Math.min(widest + 16, width * 0.3), right = narrow ? width : width - 38;
    const x = time => right - (now - time) / SECONDS * (right - left);
    pen.textBaseline = 'middle';
    shown.forEach((word, lane) => {
      const top = lane * LANE + text, base = (lane + 1) * LANE - 5, tall = base - top - 7;
      const y = score => base - Math.max(0, Math.min(1, score)) * tall;
      pen.strokeStyle = colour('rule');
      pen.lineWidth = 1;
      line(pen, [[left, base + 0.5], [right, base + 0.5]]);
      const marked = this.#marks.filter(mark => mark.word === word);
      for (const mark of marked) {
        if (mark.type === 'near') continue;
        pen.fillStyle = colour('tint');
        const from = Math.max(left, x(mark.start_s)), to = Math.min(right, x(mark.end_s));
        pen.fillRect(from, top + 4, Math.max(2, to - from), base - top - 4);
      }
      const threshold = this.#thresholds[word];
      if (threshold !== undefined) {
        pen.strokeStyle = colour('soft');
        pen.setLineDash([2, 4]);
        line(pen, [[left, y(threshold)], [right, y(threshold)]]);
        pen.setLineDash([]);
      }
      this.#trace(pen, this.#scores.get(word), x, y, left, right, top, base, colour);
      for (const mark of marked) {
        const at = x(mark.end_s);
        if (at < left) continue;
        pen.beginPath();
        pen.moveTo(at, top + 10);
        pen.lineTo(at - 5, top + 2);
        pen.lineTo(at + 5, top + 2);
        pen.closePath();
        pen.fillStyle = colour(mark.type === 'near' ? 'card' : 'accent');
        pen.strokeStyle = colour('accent');
        pen.lineWidth = 1.5;
        pen.fill();
        pen.stroke();
      }
      const middle = narrow ? top - text / 2 : base - tall / 2 + 2, room = narrow ? width - 60 : left - 12;
      const latest = this.#scores.get(word).at(-1);
      pen.fillStyle = colour('ink');
      pen.textAlign = 'left';
      pen.fillText(fit(pen, word, room), 0, middle);
      pen.fillStyle = colour('soft');
      pen.textAlign = 'right';
      pen.fillText(latest === null || latest === undefined ? '–' : number(Math.max(0, latest), 2), width, middle);
    });
    pen.fillStyle = colour('soft');
    pen.font = narrow ? '13px system-ui, sans-serif' : '11px system-ui, sans-serif';
    const foot = height - 8;
    pen.textAlign = 'left';
    pen.fillText(texts.secondsAgo(SECONDS), left, foot);
    pen.textAlign = 'right';
    pen.fillText(texts.now, right, foot);
  }

  #trace(pen, row, x, y, left, right, top, base, colour) {
    pen.save();
    pen.beginPath();
    pen.rect(left, top, right - left, base - top + 2);
    pen.clip();
    let run = [];
    const flush = () => {
      if (run.length > 1) {
        pen.beginPath();
        pen.moveTo(run[0][0], base);
        run.forEach(point => pen.lineTo(...point));
        pen.lineTo(run.at(-1)[0], base);
        pen.globalAlpha = 0.16;
        pen.fillStyle = colour('accent');
        pen.fill();
        pen.globalAlpha = 1;
        pen.strokeStyle = colour('accent');
        pen.lineWidth = 2;
        pen.lineJoin = 'round';
        line(pen, run);
      }
      run = [];
    };
    row.forEach((score, i) => {
      const at = x(this.#times[i]);
      if (score === null) flush();
      else run.push([at, y(score)]);
    });
    flush();
    pen.restore();
  }
}

function line(pen, points) {
  pen.beginPath();
  points.forEach((point, i) => i ? pen.lineTo(...point) : pen.moveTo(...point));
  pen.stroke();
}

function fit(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let short = text;
  while (short && pen.measureText(`${short}…`).width > width) short = short.slice(0, -1);
  return `${short}…`;
}
