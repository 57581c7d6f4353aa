// The words in the browser's storage; other tabs are notified of every change.

const NAME = 'tapword', TABLE = 'models', KEY = 'home';

const news = new BroadcastChannel(NAME);

const done = request => new Promise((yes, no) => {
  request.onsuccess = () => yes(request.result);
  request.onerror = () => no(request.error);
});

async function table(mode) {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
  const base = await done(request);
  return {base, rows: base.transaction(TABLE, mode).objectStore(TABLE)};
}

export async function read() {
  const {base, rows} = await table('readonly');
  try { return await done(rows.get(KEY)); } finally { base.close(); }
}

export async function write(bytes) {
  const {base, rows} = await table('readwrite');
  const {transaction} = rows;
  try {
    // Only the end of the transaction counts: it may fail after the request succeeded.
    const kept = new Promise((yes, no) => {
      transaction.oncomplete = yes;
      transaction.onabort = () => no(transaction.error ?? new Error('the write was aborted'));
    });
    rows.put(bytes, KEY);
    await kept;
  } finally { base.close(); }
  news.postMessage('changed');
}

export const onChange = whenever => { news.onmessage = whenever; };
