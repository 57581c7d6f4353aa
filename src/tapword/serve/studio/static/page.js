// Small helpers for every part of the page.

import {number, texts} from './texts.js';

/** @type {(id: string) => any} */
export const $ = id => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made && name !== 'list') made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#i-${name}`);
  svg.append(use);
  return svg;
}

// A button with an icon; the key finds it again after a redraw.
export function tool(sign, label, key, onclick) {
  return element('button', {type: 'button', className: 'quiet icon', title: label,
    'aria-label': label, 'data-key': key, onclick}, icon(sign));
}

// Show a text with an icon, so that colour is not the only difference between good and bad.
export function showStatus(place, text, kind = '') {
  const sign = {good: 'good', bad: 'warn', busy: 'wait'}[kind];
  place.className = `verdict ${kind}`;
  place.replaceChildren(...(text && sign ? [icon(sign)] : []), ...(text ? [element('span', {}, text)] : []));
}

// Announce a text to screen readers.
export function announce(text) {
  // A live region is read only when it changes.
  $('say').textContent = '';
  requestAnimationFrame(() => { $('say').textContent = text; });
}

export function bytes(n) {
  if (n < 1000) return texts.byte(n);
  const [value, unit] = n < 1e6 ? [n / 1000, 'kB'] : [n / 1e6, 'MB'];
  return `${number(value, value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
}

/** @type {() => HTMLElement | null} */
const focused = () => /** @type {HTMLElement} */ (document.activeElement);

// Draw something again; the keyboard's focus stays, or goes to what `next` gives.
export function redraw(draw, next) {
  const before = focused(), key = before?.dataset.key;
  draw();
  if (before?.isConnected || before === document.body) return;
  (find(key) ?? next())?.focus({preventScroll: true});
}

/** @type {(key: string) => HTMLElement | null} */
export const find = key => key ? document.querySelector(`[data-key="${CSS.escape(key)}"]`) : null;

// Ask something; resolves to {choice, text}, choice null if the dialog was cancelled.
export function ask({title, text = '', label = null, value = '', choices}) {
  const dialog = $('dialog'), input = $('dialog-input'), before = focused();
  $('dialog-title').textContent = title;
  $('dialog-text').textContent = text;
  $('dialog-field').hidden = label === null;
  $('dialog-label').textContent = label ?? '';
  input.value = value;
  const buttons = choices.map(([name, shown, look = '']) =>
    element('button', {type: 'submit', value: name, className: look}, shown));
  buttons.push(element('button', {type: 'button', className: 'quiet', onclick: () => dialog.close('')}, texts.cancel));
  $('dialog-actions').replaceChildren(...buttons);
  dialog.returnValue = '';
  dialog.showModal();
  if (label !== null) input.select();
  return new Promise(resolve => {
    dialog.onclose = () => {
      // The event of the dialog before may come when this one is open.
      if (dialog.open) return;
      // The list with the focus may have been redrawn meanwhile.
      if (!before?.isConnected) find(before?.dataset.key)?.focus({preventScroll: true});
      resolve({choice: dialog.returnValue || null, text: input.value.trim()});
    };
  });
}

// Make a change that may fail; announce that it is done, or show the error.
export async function attempt(change, done = '') {
  try {
    const value = await change();
    if (done) announce(done);
    return value;
  } catch (error) {
    await ask({title: texts.failed, text: error.message, choices: [['ok', texts.ok, 'primary']]});
    return null;
  }
}

export function colours() {
  const style = getComputedStyle(document.documentElement);
  return name => style.getPropertyValue(`--${name}`).trim();
}

// Fit a canvas to its box and the screen; returns the drawing context and the box in CSS pixels.
export function prepare(canvas, height = canvas.clientHeight) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return {pen, width, height};
}
