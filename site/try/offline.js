// Caches the page for use without a network. web/build.py writes VERSION and FILES above.

const NAME = `tapword-${VERSION}`;
const worker = /** @type {any} */ (self);

worker.addEventListener('install', event => {
  // Bypass the browser's cache, which may have files of another version.
  const wanted = FILES.map(name => new Request(name, {cache: 'reload'}));
  event.waitUntil(caches.open(NAME).then(cache => cache.addAll(wanted)).then(() => worker.skipWaiting()));
});

worker.addEventListener('activate', event => {
  const old = name => name.startsWith('tapword-') && name !== NAME;
  event.waitUntil(caches.keys()
    .then(names => Promise.all(names.filter(old).map(name => caches.delete(name))))
    .then(() => worker.clients.claim()));
});

// Only the page's own files, all of one version.
worker.addEventListener('fetch', event => {
  event.respondWith(caches.open(NAME)
    .then(cache => cache.match(event.request.mode === 'navigate' ? './index.html' : event.request, {ignoreSearch: true}))
    .then(kept => kept ?? fetch(event.request)));
});
