// The sound meter: it moves whenever the microphone is open. A test opens it, and sends nothing.

import {level, use, watch} from './microphone.js';
import {$, showStatus} from './page.js';
import {texts} from './texts.js';

const TEST_MS = 30_000, LOWEST_DB = -60;

let release = null;
let ending = 0;
// When the level was last given to screen readers, and the loudest since.
let given_ms = 0;
let loudest_db = LOWEST_DB;

export function setUp() {
  $('meter-test').onclick = () => release ? stop() : start();
  watch(chunk => show(level(chunk)));
  addEventListener('microphone-closed', () => { loudest_db = LOWEST_DB; show(LOWEST_DB); });
  addEventListener('microphone-lost', stop);
  setButton();
}

async function start() {
  const user = () => {};
  showStatus($('listen-status'), texts.openingMicrophone, 'busy');
  try {
    release = await use(user);
  } catch (error) {
    showStatus($('listen-status'), error.message, 'bad');
    return;
  }
  showStatus($('listen-status'), texts.meterSpeak);
  ending = setTimeout(stop, TEST_MS);
  setButton();
}

export function stop() {
  if (!release) return;
  clearTimeout(ending);
  release();
  release = null;
  showStatus($('listen-status'), '');
  setButton();
}

function setButton() {
  $('meter-test').textContent = release ? texts.meterStop : texts.meterTest;
  $('meter-test').setAttribute('aria-pressed', String(Boolean(release)));
}

function show(now_db) {
  const share = Math.max(0, Math.min(1, (now_db - LOWEST_DB) / -LOWEST_DB));
  $('level').firstElementChild.style.transform = `scaleX(${share})`;
  loudest_db = Math.max(loudest_db, now_db);
  // Not every 80 ms.
  if (performance.now() - given_ms < 1000 && now_db > LOWEST_DB) return;
  given_ms = performance.now();
  $('level').setAttribute('aria-valuenow', String(Math.round(loudest_db)));
  $('level').setAttribute('aria-valuetext', texts.levels[loudest_db < -45 ? 'quiet' : loudest_db < -6 ? 'speech' : 'loud']);
  loudest_db = LOWEST_DB;
}
