// The core in its own thread: calls in, results out, in order.

import {Core} from './core.js';

let core = null;
let turn = Promise.resolve();

onmessage = ({data: {id, method, given}}) => {
  turn = turn.then(async () => {
    try {
      if (method === 'open') core = await Core.open(given[0]);
      const value = method === 'open' ? null : core[method](...given);
      postMessage({id, value});
    } catch ({name, code, message}) {
      postMessage({id, error: {name, code, message}});
    }
  });
};
