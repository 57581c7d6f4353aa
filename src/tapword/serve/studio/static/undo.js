// Undo the changes of this page, one after the other, in the model as it is now.

import {post} from './api.js';
import {$, announce, attempt} from './page.js';
import {texts} from './texts.js';

let last = null;
let busy = false;

export function setUp() {
  $('undo').onclick = undo;
  addEventListener('keydown', event => {
    const typing = /** @type {Element} */ (event.target).closest?.('input[type=text], dialog');
    if (event.key === 'z' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !typing) {
      event.preventDefault();
      undo();
    }
  });
}

const describe = ({kind, word, new: now}) => texts.undoWhat[kind](word, now);

export function show({history}) {
  last = history.undo;
  const text = last ? describe(last) : texts.undoNothing;
  // Not disabled, which would take the focus from whoever pressed it last.
  $('undo').setAttribute('aria-disabled', String(!last));
  $('undo').setAttribute('aria-label', text);
  $('undo').title = text;
}

async function undo() {
  if (!last || busy) { if (!last) announce(texts.undoNothing); return; }
  busy = true;
  const done = texts.undone(describe(last).replace(/^[^:]*: /, ''));
  // Free again before a failure is shown: closing that dialog takes a moment longer than it seems.
  await attempt(() => post('api/undo').finally(() => { busy = false; }), done);
}
