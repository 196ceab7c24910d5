// The Python behind the desk: starts, opens the desk, then answers the messages of PROTOCOL.md. What a first visit came to
// in memory is kept in the browser; a later one goes on from there, and reads its files when the first answer is out.
const here = new URL("./", import.meta.url), plain = self.fetch;
const say = progress => postMessage({ progress });

async function unpacked(address, type = "") {    // packed files are told apart by their names, whatever the server does
  const found = await plain(new URL(address, here));
  return found.ok ? new Response(found.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "content-type": type } }) : found;
}
const bytes = async response => new Uint8Array(await (await response).arrayBuffer());

function* members(tar) {
  const text = (at, most) => new TextDecoder().decode(tar.subarray(at, at + most)).split("\0")[0];
  for (let at = 0; tar[at];) {
    const name = text(at, 100), folder = text(at + 345, 155), size = parseInt(text(at + 124, 12), 8);
    yield { path: folder ? `${folder}/${name}` : name, data: tar.slice(at + 512, at + 512 + size) };
    at += 512 * (1 + Math.ceil(size / 512));
  }
}

async function start(again) {
  say("Loading Python");
  const lock = await (await plain(new URL("pyodide/pyodide-lock.json", here))).json();
  const places = lock.libraries ?? {}, separate = Object.keys(places);
  const packed = separate.length ? unpacked("pyodide/scantling.tar.z") : plain(new URL("pyodide/scantling.zip", here));
  const libraries = Object.fromEntries(Object.values(places).map(name => [name, unpacked(`pyodide/${name}.z`)]));
  self.fetch = (what, ...rest) => {
    const address = String(what.url ?? what), name = address.split("/").pop();
    return libraries[name] ?? (name.endsWith(".wasm") ? unpacked(`${address}.z`, "application/wasm") : plain(what, ...rest));
  };
  const kept = separate.length && !again ? await globalThis.caches?.match(new URL(lock.memory, here)).catch(() => null) : null;
  const memory = kept ? await bytes(new Response(kept.body.pipeThrough(new DecompressionStream("gzip")))) : null;
  const [{ loadPyodide }, { default: create }] = await Promise.all([import("./pyodide/pyodide.mjs"), import("./pyodide/pyodide.asm.mjs")]);
  const python = await loadPyodide({
    indexURL: new URL("pyodide/", here).href, packages: Object.keys(lock.packages), env: { HOME: "/tmp" }, ...(memory ? { _loadSnapshot: memory } : { _makeSnapshot: separate.length > 0 }),
    createPyodideModule: async settings => {     // the libraries take their places before Python begins, the same at every visit
      const locateFile = path => settings.locateFile(places[path] ?? path);
      const module = await create({ ...settings, dynamicLibraries: separate, locateFile });
      if (memory) module._emscripten_resize_heap(memory.length);
      return module;
    },
  });
  const folders = new Set();
  const fill = async () => {
    if (!separate.length) return python.unpackArchive(await bytes(packed), "zip", { extractDir: "/scantling" });   // a folder that was written without node
    for (const { path, data } of members(await bytes(packed))) {
      const folder = `/scantling/${path}`.replace(/\/[^/]*$/, "");
      if (!folders.has(folder)) { folders.add(folder); python.FS.mkdirTree(folder); }
      python.FS.writeFile(`/scantling/${path}`, data, { canOwn: true });
    }
  };
  if (!memory) {
    say("Unpacking the models");
    await fill();
    say("Assessing the first design");
    python.runPython("import gc, sys; gc.disable(); sys.path.insert(0, '/scantling'); import scantling_widgets.desk.page_worker; gc.freeze(); gc.enable()");
  }
  let held = memory || !separate.length ? null : python.makeMemorySnapshot();
  const page = python.pyimport("scantling_widgets.desk.page_worker");
  const waiting = new Map();                     // pictures of reports that the page draws
  const draw = html => new Promise((done, failed) => { waiting.set(waiting.size, { done, failed }); postMessage({ html, serial: waiting.size - 1 }); });
  const hear = page.begin(message => postMessage({ message }), draw);
  Object.assign(self, { python, restored: Boolean(memory) });
  let empty = Boolean(memory), filling = null;
  onmessage = ({ data }) => {
    if (data.drawn) return waiting.get(data.serial).done(data.drawn);
    if (data.fault) return waiting.get(data.serial).failed(new Error(data.fault));
    if (held) {
      const memory = held;
      held = null;
      setTimeout(() => new Worker("keep.js", { type: "module" }).postMessage({ name: lock.memory, memory }, [memory.buffer]), 3000);
    }
    const bare = empty && !JSON.parse(data).link;  // a greeting: what is on the page already needs no file
    if (bare) hear(data);
    if (empty) filling = fill().then(() => { filling = null; });
    empty = false;
    if (filling && !bare) filling.then(() => hear(data));
    else if (!bare) hear(data);
  };
  postMessage({ ready: true });
}

start(false).catch(() => start(true)).catch(error => postMessage({ fault: "The desk could not start: " + error.message }));
