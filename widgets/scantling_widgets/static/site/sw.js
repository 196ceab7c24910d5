// Keeps every file of this folder after the first visit; a new version of the site replaces all of them.
const KEPT = "scantling-VERSION";
const FIRST = ["./", "page.js", "page.css", "desk.js", "desk.css", "vega.js"];   // were fetched before this listened
self.addEventListener("install", event => { self.skipWaiting(); event.waitUntil(caches.open(KEPT).then(kept => kept.addAll(FIRST))); });
self.addEventListener("activate", event => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("scantling-") && name !== KEPT) await caches.delete(name);
  await self.clients.claim();
})()));
self.addEventListener("fetch", event => {
  const address = new URL(event.request.url);
  if (event.request.method !== "GET" || address.origin !== location.origin) return;
  event.respondWith((async () => {
    const kept = await caches.open(KEPT), found = await kept.match(event.request, { ignoreSearch: true });
    if (found) return found;
    const fresh = await fetch(event.request);
    if (fresh.ok && fresh.status === 200) await kept.put(event.request, fresh.clone());
    return fresh;
  })());
});
