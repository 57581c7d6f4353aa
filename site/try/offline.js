// Keeps the page for times without a network. VERSION and FILES are written above by the build.

const NAME = `tapword-${VERSION}`;
const worker = /** @type {any} */ (self);

worker.addEventListener('install', event => {
  // Past the browser's own cache, which may hold files of another version.
  const wanted = FILES.map(name => new Request(name, {cache: 'reload'}));
  event.waitUntil(caches.open(NAME).then(cache => cache.addAll(wanted)).then(() => worker.skipWaiting()));
});

worker.addEventListener('activate', event => {
  const old = name => name.startsWith('tapword-') && name !== NAME;
  event.waitUntil(caches.keys()
    .then(names => Promise.all(names.filter(old).map(name => caches.delete(name))))
    .then(() => worker.clients.claim()));
});

// The page's own files, all of one version; whatever else lies on the same server is not ours.
worker.addEventListener('fetch', event => {
  event.respondWith(caches.open(NAME)
    .then(cache => cache.match(event.request.mode === 'navigate' ? './index.html' : event.request, {ignoreSearch: true}))
    .then(kept => kept ?? fetch(event.request)));
});
