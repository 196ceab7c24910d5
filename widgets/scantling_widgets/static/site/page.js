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

async function start() {
  if (location.protocol === "file:") return fail("A browser computes nothing from a file: put this folder behind any web server, for example python3 -m http.server, and open its address.");
  await offline().catch(() => {});               // a private window may have none: the desk then needs its server each time
  const worker = new Worker("worker.js", { type: "module" });
  const began = performance.now();
  let hear = null;
  const early = [];
  worker.addEventListener("error", event => fail("The desk could not start: " + (event.message || "a file is missing here")));
  worker.addEventListener("message", ({ data }) => {
    if (data.progress) progress.textContent = `${data.progress} (${((performance.now() - began) / 1000).toFixed(0)} s)`;
    else if (data.fault) fail(data.fault);
    else if (data.ready) {
      document.documentElement.dataset.ready = Math.round(performance.now());
      progress.hidden = true;
      open(document.getElementById("desk"), { send: message => worker.postMessage(JSON.stringify(message)), listen: act => { hear = act; for (const one of early.splice(0)) act(one); } });
    } else if (hear) hear(JSON.parse(data.message));
    else early.push(JSON.parse(data.message));
  });
}
start();
