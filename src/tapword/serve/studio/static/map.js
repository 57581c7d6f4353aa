// The map: what is close on it sounds close to the model; the same as a table below.

import {get} from './api.js';
import {$, element} from './page.js';
import {number, texts} from './texts.js';

const WIDTH = 640, SIDE = 80, TOP = 44, BOTTOM = 22, LOWEST = 200, TALLEST = 460;
const MAX_LISTED = 3;

let wanted = null;

export async function show({revision, words}) {
  if (words.length >= 2 && wanted === revision) return;
  wanted = revision;
  if (words.length < 2) { draw(words, [], []); return; }
  let map;
  // The page works without a map; the next change asks for it again.
  try { map = await get('api/map'); } catch { wanted = null; return; }
  // The map of a newer model may be on its way.
  if (wanted === revision) draw(words, map.points, map.overlaps);
}

function draw(words, points, overlaps) {
  $('map-empty').hidden = points.length > 0;
  $('map-empty').textContent = words.length < 2
    ? texts.mapFew : texts.mapNone;
  $('map-details').hidden = !points.length;
  $('map-lead').textContent = points.length ? summary(points, overlaps) : '';
  $('map-columns').replaceChildren(...texts.mapColumns.map((name, i) =>
    element('th', {scope: 'col', className: i === 3 ? 'number' : ''}, name)));
  $('map-table').replaceChildren(...points.map(point => element('tr', {},
    element('th', {scope: 'row'}, point.word), element('td', {}, point.nearest),
    element('td', {}, texts.verdicts[point.verdict]), element('td', {className: 'number'}, number(point.distance, 2)))));
  $('map-picture').replaceChildren(...(points.length ? [picture(points)] : []));
}

function pairs(points, verdict) {
  const found = new Map();
  for (const {word, nearest, verdict: is} of points) {
    if (is === verdict) found.set([word, nearest].sort().join('\n'), [word, nearest]);
  }
  return [...found.values()];
}

// The text agrees with the picture: what is drawn close is named.
function summary(points, overlaps) {
  const name = found => listed(found.map(([one, two]) => texts.mapPair(one, two)));
  const risky = pairs(points, 'confusable'), close = pairs(points, 'close');
  return [
    ...(risky.length ? [texts.mapMixed(name(risky))] : []),
    ...(close.length ? [texts.mapClose(name(close))] : []),
    ...(risky.length || close.length ? [] : [texts.mapApart]),
    ...(overlaps.length ? [texts.mapOverlap(name(overlaps))] : []),
  ].join(' ');
}

const listed = names => [...names.slice(0, MAX_LISTED), ...(names.length > MAX_LISTED
  ? [texts.morePairs(names.length - MAX_LISTED)] : [])].join('; ');

function svg(tag, attributes, text = null) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

function picture(points) {
  // One scale for both axes, so that distances are true; this sets the height.
  const scale = (WIDTH - 2 * SIDE) / 2;
  const ys = points.map(({y}) => y), top = Math.min(...ys), tall = Math.max(...ys) - top;
  const height = Math.max(LOWEST, Math.min(TALLEST, tall * scale + TOP + BOTTOM));
  const squeeze = Math.min(1, (height - TOP - BOTTOM) / (tall * scale || 1));
  const places = spread(points.map(({word, x, y}) => ({
    word,
    x: WIDTH / 2 + x * scale * squeeze,
    y: TOP + (height - TOP - BOTTOM - tall * scale * squeeze) / 2 + (y - top) * scale * squeeze,
  })), height);
  const drawn = svg('svg', {viewBox: `0 0 ${WIDTH} ${height}`, class: 'map', role: 'img',
    'aria-label': texts.mapLabel(points.length)});
  const at = new Map(places.map(place => [place.word, place]));
  for (const [verdict, look] of [['close', 'link close'], ['confusable', 'link risky']]) {
    for (const [one, two] of pairs(points, verdict)) {
      const from = at.get(one), to = at.get(two);
      drawn.append(svg('line', {x1: from.x, y1: from.y, x2: to.x, y2: to.y, class: look}));
    }
  }
  for (const {x, y} of places) drawn.append(svg('circle', {cx: x, cy: y, r: 5.5}));
  for (const {word, x, y} of places) {
    const end = x > WIDTH - 90, start = x < 90;
    drawn.append(svg('text', {x: end ? x + 6 : start ? x - 6 : x, y: y - 11,
      'text-anchor': end ? 'end' : start ? 'start' : 'middle'}, shorten(word)));
  }
  return drawn;
}

const shorten = word => word.length > 16 ? `${word.slice(0, 15)}…` : word;

// Move overlapping labels apart, as little as possible.
function spread(places, height) {
  for (let round = 0; round < 60; round++) {
    let moved = false;
    for (let i = 0; i < places.length; i++) {
      for (let j = i + 1; j < places.length; j++) {
        const one = places[i], two = places[j];
        const wide = (shorten(one.word).length + shorten(two.word).length) * 4 + 14;
        const over = [wide - Math.abs(one.x - two.x), 30 - Math.abs(one.y - two.y)];
        if (over[0] <= 0 || over[1] <= 0) continue;
        const push = over[1] / 2 * (one.y <= two.y ? 1 : -1);
        one.y -= push;
        two.y += push;
        moved = true;
      }
    }
    for (const place of places) place.y = Math.max(28, Math.min(height - 10, place.y));
    if (!moved) break;
  }
  return places;
}
