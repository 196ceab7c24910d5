// The desk in a page alone: the front end of the desk, answered by a worker in place of a kernel.
import "./vega.js";
import { open } from "./desk.js";

const dark = matchMedia("(prefers-color-scheme: dark)");          // said as JupyterLab says it, for colours and charts
const dress = () => { document.body.dataset.jpThemeLight = String(!dark.matches); };
dress();
dark.addEventListener("change", dress);

const progress = document.getElementById("progress"), trouble = document.getElementById("trouble");
const fail = text => { trouble.textContent = text; trouble.hidden = false; progress.hidden = true; };

async function offline() {                       // everything passes through the service worker from the first visit on
  if (!("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.register("sw.js", { scope: "./" });
  if (!navigator.serviceWorker.controller)
    await Promise.race([new Promise(done => navigator.serviceWorker.addEventListener("controllerchange", done, { once: true })), new Promise(done => setTimeout(done, 2000))]);
}

// a report with its pictures: the worker has their specifications, the page what draws. As on a page that
// `report` writes: one sentence for each in place of Vega's names of marks, ids of its own, the font of the page
async function pictures(html) {
  const held = document.createElement("template");
  held.innerHTML = html;
  for (const [number, mark] of held.content.querySelectorAll("svg[data-spec]").entries()) {
    const { view } = await globalThis.__scantlingVega(document.createElement("div"), JSON.parse(mark.dataset.spec), { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: false });
    const text = await view.toSVG(), words = mark.getAttribute("aria-label"), box = document.createElement("div");
    view.finalize();
    box.innerHTML = text.replace(/(\bid="|="#|url\(#)/g, `$1p${number}-`);
    const picture = box.querySelector("svg");
    for (const part of [picture, ...picture.querySelectorAll("*")])
      for (const name of part.getAttributeNames()) if (/^(role|aria-.*|font-family)$/.test(name)) part.removeAttribute(name);
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", words);
    const title = document.createElementNS(picture.namespaceURI, "title");
    title.textContent = words;
    picture.prepend(title);
    mark.replaceWith(picture);
  }
  return held.innerHTML;
}

async function start() {
  const opened = document.getElementById("opened");
  opened.remove();
  if (location.protocol === "file:") return fail(opened.textContent);
  await offline().catch(() => {});               // a private window may have none: the desk then needs its server each time
  const worker = new Worker("worker.js", { type: "module" });
  const began = performance.now(), held = [], early = [];
  let hear = null, ready = false, doing = "Starting";
  const tell = () => { progress.textContent = `${doing} (${((performance.now() - began) / 1000).toFixed(0)} s)${hear ? "; below stands the example, an input answers in a moment" : ""}`; };
  const show = () => open(document.getElementById("desk"), {
    send: message => { if (ready) worker.postMessage(JSON.stringify(message)); else held.push(message); },
    listen: act => { hear = act; for (const one of early.splice(0)) act(one); },
  });
  worker.addEventListener("error", event => fail("The desk could not start: " + (event.message || "a file is missing here")));
  worker.addEventListener("message", ({ data }) => {
    if (data.progress) { doing = data.progress; tell(); }
    else if (data.fault) fail(data.fault);
    else if (data.html !== undefined) pictures(data.html).then(drawn => worker.postMessage({ serial: data.serial, drawn }), error => worker.postMessage({ serial: data.serial, fault: error.message }));
    else if (data.ready) {
      document.documentElement.dataset.ready = Math.round(performance.now());
      progress.hidden = ready = true;
      clearInterval(awake);
      if (!hear) show();
      for (const message of held.splice(0)) worker.postMessage(JSON.stringify(message));
    } else if (hear) hear(unseen(JSON.parse(data.message)));
    else early.push(JSON.parse(data.message));
  });
  // what the desk says of its example was written with the page; all that Python says later is what changed since
  const seen = {};
  const unseen = message => {
    for (const [id, entries] of Object.entries(message.parts ?? {})) {
      for (const [name, text] of Object.entries(seen[id] ?? {})) if (JSON.stringify(entries[name]) === text) delete entries[name];
      delete seen[id];
    }
    return message;
  };
  const awake = setInterval(() => hear?.({}), 3000);
  if (location.hash.length > 1) return;
  const written = async name => (await fetch(`pyodide/${name}`)).json();
  if (!(await written("pyodide-lock.json")).libraries) return;
  const first = await written("first.json");
  if (ready) return;
  for (const { parts } of first) for (const [id, entries] of Object.entries(parts ?? {}))
    for (const [name, value] of Object.entries(entries)) (seen[id] ??= {})[name] = JSON.stringify(value);
  show();
  for (const message of first) hear(message);
  tell();
  document.documentElement.dataset.shown = Math.round(performance.now());
}
start();
