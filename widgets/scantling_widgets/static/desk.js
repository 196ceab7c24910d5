// The desk's front end: parts that travel as data (PROTOCOL.md). Who answers, a Jupyter kernel, Voilà's or a worker in
// the page, is known to the transport alone: {send(message), listen(act)}.

// ask whether somebody is there; say that nobody is; and that nobody is any more who said that he computes
const QUIET_MS = 10000, LOST_MS = 12000, COMPUTING_MS = 90000;
// what takes longer is said to who hears the page, and so is its end: most answers take less
const SPOKEN_MS = 1500;

const node = (tag, cls = "", parent = null) => { const n = document.createElement(tag); n.className = cls; parent?.append(n); return n; };

kinds.html = ({ model, el }) => {
  const fill = () => { el.innerHTML = model.get("value"); };
  model.on("change:value", fill);
  fill();
};

kinds.box = ({ model, el, draw }) => {
  let head = null;
  const fill = () => {
    const title = model.get("title"), rest = model.get("children").map(draw);
    if (title && !head) {
      head = node("div", "sd-card-head");
      const name = node("div", "sd-card-title", head);
      name.setAttribute("role", "heading"); name.setAttribute("aria-level", "3");
      node("span", "sd-note", head);
    }
    if (head) { head.firstChild.textContent = title; head.lastChild.textContent = model.get("note") ?? ""; }
    const now = head ? [head, ...rest] : rest;
    if (now.length !== el.childNodes.length || now.some((n, i) => n !== el.childNodes[i])) el.replaceChildren(...now);
  };
  model.on("change:children change:note change:title", fill);
  fill();
};

kinds.button = ({ model, el }) => {
  const button = node("button", "sd-button", el);
  button.type = "button";
  button.addEventListener("click", () => { model.set("clicks", model.get("clicks") + 1); model.save_changes(); });
  const fill = () => {
    button.textContent = model.get("description"); button.title = model.get("tooltip");
    button.disabled = model.get("disabled"); button.classList.toggle("sd-active", model.get("active"));
  };
  model.on("change:description change:tooltip change:disabled change:active", fill);
  fill();
};

// the page of the desk alone has an address of its own; JupyterLab's belongs to JupyterLab
const ours = () => !document.querySelector(".jp-NotebookPanel");

kinds.link = ({ model, el }) => {
  const button = node("button", "sd-button", el);
  button.type = "button"; button.textContent = model.get("description");
  // a page of this machine alone opens for nobody else, and its address holds a token: the design's own part is copied
  const abroad = ours() && !document.body.dataset.voila;
  const opens = "it opens behind # in the address of any desk, with scantling design \"…\", and as open_desk(\"…\")";
  button.title = abroad ? "Copy the address that opens this design" : `Copy what holds this design: ${opens}`;
  button.addEventListener("click", async () => {
    const host = el.closest(".sd-host"), until = performance.now() + 10000;
    while (host?.classList.contains("sd-computing") && performance.now() < until) await new Promise(done => setTimeout(done, 50));   // what is copied is what the inputs say
    const text = abroad ? location.origin + location.pathname + "#" + model.get("value") : model.get("value");
    try { await navigator.clipboard.writeText(text); button.textContent = abroad ? "Copied" : "Copied: for any desk, or scantling design"; } catch { prompt("The link of this design:", text); }
    setTimeout(() => { button.textContent = model.get("description"); }, 2500);
  });
  const fill = () => { if (ours()) history.replaceState(history.state, "", "#" + model.get("value")); };
  model.on("change:value", fill);
  fill();
};

// a file for whoever looks: it goes to the reader's downloads as it arrives, and stays as a link
kinds.download = ({ model, el }) => {
  const link = node("a", "sd-link", el);
  let kept = 0;
  const give = () => {
    const { file_name: name, content, serial } = model.get("file");
    link.hidden = !name;
    if (!name) return;
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob([Uint8Array.from(atob(content), c => c.charCodeAt(0))], { type: "application/octet-stream" }));
    link.download = name; link.textContent = `Download ${name} again`;
    if (serial !== kept) link.click();
    kept = serial;
  };
  kept = model.get("file").serial ?? 0;                             // of a page that was drawn before
  model.on("change:file", give);
  give();
};

let labels = 0;
const labelled = (el, model, control) => {
  const label = node("label", "sd-label", el);
  control.id = "sdc" + (labels += 1);
  label.htmlFor = control.id; label.textContent = model.get("description");
  el.append(control);
};

kinds.field = ({ model, el }) => {
  if (model.get("takes")) {                                       // a file of the visitor's own: its text travels
    const input = node("input");
    input.type = "file"; input.dataset.takes = model.get("takes"); labelled(el, model, input);
    const most = model.get("takes") !== "log" ? 1e6 : document.body.dataset.voila ? 12e6 : 20e6;   // a message to the server has a size
    input.addEventListener("change", async () => {
      const file = input.files[0], fits = !file || file.size < most;
      input.setCustomValidity(fits ? "" : `At most ${most / 1e6} MB`);
      input.reportValidity();
      if (file && fits) { model.set("value", await file.text()); model.save_changes(); }
    });
    return;
  }
  const lines = model.get("lines"), input = node(lines > 1 ? "textarea" : "input", "sd-field");
  if (lines > 1) { input.rows = lines; input.spellcheck = false; } else input.type = "text";
  labelled(el, model, input);
  input.addEventListener("change", () => { model.set("value", input.value); model.save_changes(); });
  const fill = () => { if (input.value !== model.get("value")) input.value = model.get("value"); };
  model.on("change:value", fill);
  fill();
};

kinds.drop = ({ model, el }) => {
  const select = node("select", "sd-select");
  labelled(el, model, select);
  select.addEventListener("change", () => { model.set("index", select.selectedIndex); model.save_changes(); });
  const fill = () => {
    const names = model.get("names");
    if ([...select.options].map(o => o.textContent).join("\n") !== names.join("\n"))
      select.replaceChildren(...names.map(name => { const option = node("option"); option.textContent = name; return option; }));
    select.selectedIndex = model.get("index");
  };
  model.on("change:names change:index", fill);
  fill();
};

kinds.tabs = ({ model, el, draw }) => {
  const bar = node("div", "sd-tabbar", el), own = "sdt" + (labels += 1);
  bar.setAttribute("role", "tablist");
  const front = index => { model.set("selected_index", index); model.save_changes(); fill(); };
  const panels = model.get("children").map((id, i) => {
    const tab = node("button", "sd-tab", bar), panel = node("div", "sd-panel", el);
    tab.type = "button"; tab.id = `${own}-${i}`; tab.textContent = model.get("titles")[i];
    tab.setAttribute("role", "tab"); tab.setAttribute("aria-controls", `${own}-p${i}`);
    panel.id = `${own}-p${i}`; panel.tabIndex = -1;
    panel.setAttribute("role", "tabpanel"); panel.setAttribute("aria-labelledby", tab.id);
    panel.append(draw(id));
    tab.addEventListener("click", () => front(i));
    return panel;
  });
  bar.addEventListener("keydown", event => {
    const all = [...bar.children].filter(tab => !tab.hidden), at = all.indexOf(document.activeElement), last = all.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all[to].focus();
  });
  const fill = () => panels.forEach((panel, i) => {
    const chosen = i === model.get("selected_index");
    bar.children[i].setAttribute("aria-selected", String(chosen));
    bar.children[i].tabIndex = chosen ? 0 : -1;
    bar.children[i].hidden = !model.get("offered").includes(i);
    panel.hidden = !chosen;
  });
  model.on("change:selected_index change:offered", fill);
  fill();
};

// The part of the state that one element draws.
class Model {
  constructor(id, send) { this.id = id; this.send = send; this.state = {}; this.acts = new Map(); this.touched = new Set(); }
  get(name) { return this.state[name]; }
  set(name, value) { this.state[name] = value; this.touched.add(name); }
  save_changes() { this.send(this.id, Object.fromEntries([...this.touched].map(name => [name, this.state[name]]))); this.touched.clear(); }
  on(names, act) { for (const name of names.split(" ")) this.acts.set(name, [...(this.acts.get(name) ?? []), act]); }
  off(names, act) { for (const name of names.split(" ")) this.acts.set(name, (this.acts.get(name) ?? []).filter(a => a !== act)); }
  take(entries) {
    const told = new Set();
    const changed = Object.keys(entries).filter(name => !Object.is(this.state[name], entries[name]));
    Object.assign(this.state, entries);
    for (const name of changed) for (const act of this.acts.get("change:" + name) ?? []) told.add(act);
    if (changed.length) for (const act of this.acts.get("change") ?? []) told.add(act);
    for (const act of told) act();
  }
}

function open(el, transport) {
  const models = new Map(), elements = new Map(), endings = [];
  const own = Math.random().toString(36).slice(2);
  let root = null, serial = 0, awaited = "", waiting = {}, heard = performance.now(), asked = 0, moved = false, computing = false;
  el.classList.add("sd-host");
  const banner = node("div", "sd-lost", el);
  banner.setAttribute("role", "alert"); banner.hidden = true;
  const busy = node("div", "sd-busy", el);
  busy.setAttribute("aria-hidden", "true"); node("span", "", busy).textContent = "computing";
  const spoken = node("div", "sd-spoken", el);
  spoken.setAttribute("role", "status");
  let speaks = 0;

  // one message in flight; what is set meanwhile travels together when it is answered, the last word of each entry
  const post = message => { awaited = `${own}:${serial += 1}`; asked = performance.now(); transport.send({ ...message, serial: awaited }); };
  const push = () => {
    if (awaited || !Object.keys(waiting).length) return;
    const set = waiting;
    waiting = {};
    post({ set });
  };
  // from the move of an input on what stands is of an earlier design: grey at once, until the answer is drawn
  const dim = () => {
    const works = moved || computing;
    el.classList.toggle("sd-computing", works);
    if (works) speaks ||= setTimeout(() => { spoken.textContent = "computing"; }, SPOKEN_MS);
    else {
      clearTimeout(speaks);
      speaks = 0;
      if (spoken.textContent === "computing") spoken.textContent = "finished";
    }
  };
  const send = (id, entries) => {
    waiting[id] = { ...waiting[id], ...entries };
    if (["proposal", "clicks", "picked"].some(name => name in entries)) { moved = true; dim(); }
    push();
  };

  const part = id => models.get(id);
  function draw(id) {
    if (elements.has(id)) return elements.get(id);
    const model = models.get(id), own = document.createElement("div");
    elements.set(id, own);
    const dress = () => { own.hidden = model.get("hidden"); };
    for (const name of (model.get("cls") || "").split(" ").filter(Boolean)) own.classList.add(name);
    own.classList.add("sd-is-" + model.get("kind"));
    if (model.get("role")) own.setAttribute("role", model.get("role"));
    if (model.get("height")) own.style.minHeight = model.get("height") + "px";
    model.on("change:hidden", dress);
    dress();
    endings.push(kinds[model.get("kind")]({ model, el: own, draw, part }));
    return own;
  }

  const lost = is => {
    if (is === !banner.hidden) return;
    banner.hidden = !is;
    for (const model of models.values()) if (model.get("kind") === "form") model.take({ lost: is });
    el.classList.toggle("sd-stale", is);
  };
  function hear(message) {
    heard = performance.now();
    if (message.runtime) import(URL.createObjectURL(new Blob([message.runtime], { type: "text/javascript" })));
    if (message.root) root = message.root;
    if (message.parts) {
      const all = Object.entries(message.parts), known = all.filter(([id]) => models.has(id));
      for (const [id, entries] of all) if (!models.has(id)) { models.set(id, new Model(id, send)); Object.assign(models.get(id).state, entries); }
      for (const [id, entries] of known) models.get(id).take(entries);
      if (root && models.has(root) && !elements.has(root)) el.append(draw(root));
    }
    if (message.computing !== undefined) computing = message.computing;
    if (message.answered && message.answered === awaited) { awaited = ""; push(); moved &&= Boolean(awaited); }
    dim();
    lost(false);
  }
  transport.listen(hear);

  const clock = setInterval(() => {
    const now = performance.now();
    if (document.hidden) { heard = now; asked = awaited ? now : asked; return; }
    if (awaited && now - Math.max(asked, heard) > (computing ? COMPUTING_MS : LOST_MS)) lost(true);
    else if (!awaited && now - heard > QUIET_MS) post({ ping: 1 });
  }, 1000);
  node("b", "", banner).textContent = "No answer.";
  node("span", "", banner).textContent = ours()
    ? "Who computes here is busy, paused or gone; what stands is the last answer, and the page goes on when one comes. If none does: the address of this page keeps the design."
    : "The kernel is busy with another cell, paused or gone; what stands is the last answer, and the desk goes on when one comes. If none does, restart the kernel and run all cells: the desk opens where it stopped.";
  if (ours()) {
    const again = node("button", "sd-button", banner);
    again.type = "button"; again.textContent = "Open this design again";
    again.addEventListener("click", () => location.reload());
  }
  // a file that is dropped on the desk goes to the field that takes its kind: a design, else a log or a table
  const over = event => event.preventDefault();
  const dropped = event => {
    const file = event.dataTransfer?.files[0], kind = /\.ya?ml$/.test(file?.name ?? "") ? "file" : "log";
    if (!file) return;
    event.preventDefault();
    event.stopPropagation();
    const field = el.querySelector(`input[type=file][data-takes=${kind}]`);
    if (field) return take(field, event.dataTransfer.files);
    const tab = [...el.querySelectorAll("[role=tab]")].find(one => one.textContent === "File and report");   // it is made when it is first shown
    tab?.click();
    const files = event.dataTransfer.files, until = performance.now() + 10000, wait = setInterval(() => {
      const made = el.querySelector(`input[type=file][data-takes=${kind}]`);
      if (made) take(made, files);
      if (made || performance.now() > until) clearInterval(wait);
    }, 100);
  };
  const take = (field, files) => {
    field.files = files;
    field.dispatchEvent(new Event("change"));
    field.scrollIntoView({ block: "center" });
  };
  const surface = ours() ? globalThis : el;                          // in JupyterLab the rest of the window is JupyterLab's
  surface.addEventListener("dragover", over);
  surface.addEventListener("drop", dropped);
  endings.push(() => { surface.removeEventListener("dragover", over); surface.removeEventListener("drop", dropped); });
  post({ hello: 1, vega: Boolean(globalThis.__scantlingVega), link: ours() ? location.hash : "" });
  return () => { clearInterval(clock); clearTimeout(speaks); for (const end of endings) end?.(); };
}

export default {
  render({ model, el }) {
    let act = null;
    const hear = message => act?.(message);
    model.on("msg:custom", hear);
    const close = open(el, { send: message => model.send(message), listen: f => { act = f; } });
    return () => { model.off("msg:custom", hear); close(); };
  },
};
