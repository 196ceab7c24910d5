// The Python behind the desk: starts, opens the desk, then answers the messages of PROTOCOL.md.
const say = progress => postMessage({ progress });

// the interpreter travels packed, whatever the server does
const plain = self.fetch;
self.fetch = async (what, ...rest) => {
  const address = String(what.url ?? what);
  if (!address.endsWith(".wasm")) return plain(what, ...rest);
  const found = await plain(address + ".z");
  if (!found.ok) return found;
  return new Response(found.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "content-type": "application/wasm" } });
};

async function start() {
  say("Loading Python");
  const here = new URL("./", import.meta.url);
  const code = plain(new URL("scantling.zip", here)).then(found => found.arrayBuffer());
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const lock = await (await plain(new URL("pyodide/pyodide-lock.json", here))).json();
  const python = await loadPyodide({ indexURL: new URL("pyodide/", here).href, packages: Object.keys(lock.packages), env: { HOME: "/tmp" } });
  say("Unpacking the models");
  python.unpackArchive(await code, "zip", { extractDir: "/scantling" });
  python.runPython("import sys; sys.path.insert(0, '/scantling')");
  say("Reading the models");
  const page = python.pyimport("scantling_widgets.page_worker");
  say("Assessing the first design");
  const waiting = new Map();                     // pictures of reports that the page draws
  const draw = html => new Promise((done, failed) => { waiting.set(waiting.size, { done, failed }); postMessage({ html, serial: waiting.size - 1 }); });
  const hear = page.begin(message => postMessage({ message }), draw);
  self.python = python;
  onmessage = ({ data }) => {
    if (data.drawn) waiting.get(data.serial).done(data.drawn);
    else if (data.fault) waiting.get(data.serial).failed(new Error(data.fault));
    else hear(data);
  };
  postMessage({ ready: true });
}

start().catch(error => postMessage({ fault: "The desk could not start: " + error.message }));
