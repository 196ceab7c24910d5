// Keeps the memory of the desk's Python beside the other files of this version of the site, packed; apart, since that takes seconds.
onmessage = async ({ data: { name, memory } }) => {
  const ours = (await caches.keys()).find(key => key.startsWith("scantling-"));
  const packed = new Response(new Blob([memory]).stream().pipeThrough(new CompressionStream("gzip")));
  if (ours) await (await caches.open(ours)).put(new URL(name, import.meta.url), packed).catch(() => {});   // no room: the next visit starts as this one
  close();
};
