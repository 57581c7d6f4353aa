// Small helpers that every part of the page uses.

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

// Text with a sign before it, so that colour is never all that tells good from bad.
export function tell(place, text, kind = '') {
  const sign = {good: 'good', bad: 'warn', busy: 'wait'}[kind];
  place.className = `verdict ${kind}`;
  place.replaceChildren(...(text && sign ? [icon(sign)] : []), ...(text ? [element('span', {}, text)] : []));
}

export function say(text) {
  // A live region speaks only of what changes.
  $('say').textContent = '';
  requestAnimationFrame(() => { $('say').textContent = text; });
}

export const quoted = word => `“${word}”`;

export function count(n, one, many = `${one}s`) {
  return `${n} ${n === 1 ? one : many}`;
}

export function bytes(n) {
  if (n < 1000) return count(n, 'byte');
  return n < 1e6 ? `${(n / 1000).toPrecision(3)} kB` : `${(n / 1e6).toPrecision(3)} MB`;
}

// Ask something; resolves to {choice, text}, choice null where the person turned away.
export function ask({title, text = '', label = null, value = '', choices}) {
  const dialog = $('dialog'), input = $('dialog-input');
  $('dialog-title').textContent = title;
  $('dialog-text').textContent = text;
  $('dialog-field').hidden = label === null;
  $('dialog-label').textContent = label ?? '';
  input.value = value;
  const buttons = choices.map(([name, text, look = '']) =>
    element('button', {type: 'submit', value: name, className: look}, text));
  buttons.push(element('button', {type: 'button', className: 'quiet', onclick: () => dialog.close('')}, 'Cancel'));
  $('dialog-actions').replaceChildren(...buttons);
  dialog.returnValue = '';
  dialog.showModal();
  if (label !== null) input.select();
  return new Promise(resolve => {
    dialog.onclose = () => resolve({choice: dialog.returnValue || null, text: input.value.trim()});
  });
}

export function colours() {
  const style = getComputedStyle(document.documentElement);
  return name => style.getPropertyValue(`--${name}`).trim();
}

// Size a canvas to its box and the screen; gives the drawing context and the box in CSS pixels.
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
