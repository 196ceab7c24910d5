// A Vega-Lite chart that is embedded once; afterwards only its data change, so nothing flickers or jumps.

async function vega() {
  for (let tries = 0; tries < 1200; tries++) {
    if (globalThis.__scantlingVega) return globalThis.__scantlingVega;
    await new Promise(done => setTimeout(done, 25));
  }
  throw new Error("the chart runtime did not load");
}

const css = name => getComputedStyle(document.body).getPropertyValue(name).trim();
const palette = () => ["--jp-ui-font-color1", "--jp-ui-font-color2", "--jp-border-color2", "--jp-layout-color1"].map(css);

function pageTheme() {
  const [ink, soft, line] = palette();
  const text = ink || "#222", muted = soft || "#555", grid = line || "#ddd";
  return {
    background: "transparent",
    mark: { aria: false }, // the picture as a whole carries the words; its marks would only be read as nameless symbols
    font: css("--jp-ui-font-family") || "system-ui, sans-serif",
    view: { stroke: null },
    axis: { aria: false, labelColor: text, titleColor: text, gridColor: grid, domainColor: muted, tickColor: muted,
            labelFontSize: 11, titleFontSize: 11, titleFontWeight: 500, labelLimit: 240 },
    legend: { aria: false, labelColor: text, titleColor: text, labelFontSize: 11, titleFontSize: 11, labelLimit: 260 },
    title: { aria: false, color: text, fontSize: 13, fontWeight: 600, anchor: "start" },
    text: { color: text },
    // marks that must read on light and on dark name these styles instead of a colour
    style: {
      ink: { color: text, stroke: text }, "ink-text": { fill: text, stroke: null },
      soft: { color: muted, stroke: muted }, "soft-text": { fill: muted, stroke: null },
    },
  };
}

const plain = value => value && typeof value === "object" && !Array.isArray(value);
function merge(under, over) {
  const out = { ...under };
  for (const key in over) out[key] = plain(over[key]) ? merge(out[key] ?? {}, over[key]) : over[key];
  return out;
}

function rowsOf(columns) {
  const names = Object.keys(columns);
  const count = names.length ? columns[names[0]].length : 0;
  return Array.from({ length: count }, (_, i) => Object.fromEntries(names.map(name => [name, columns[name][i]])));
}

function csvOf(datasets) {
  const cell = value => value == null ? "" : /[",\n]/.test(String(value)) ? '"' + String(value).replaceAll('"', '""') + '"' : String(value);
  return Object.entries(datasets).filter(([, columns]) => Object.keys(columns).length).map(([name, columns]) => {
    const names = Object.keys(columns);
    const lines = rowsOf(columns).map(row => names.map(n => cell(row[n])).join(","));
    return ["# " + name, names.join(","), ...lines].join("\n");
  }).join("\n\n") + "\n";
}

function save(text, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

kinds.chart = ({ model, el }) => {
  let view = null, gone = false, width = 0, ink = palette().join();
  let last = Promise.resolve();
  const sent = new Map();             // what stands under the chart, by data name
  el.classList.add("sd-chart");
  const box = document.createElement("div");
  box.className = "sd-chart-box";
  const tools = document.createElement("div");
  tools.className = "sd-chart-tools";
  const fault = document.createElement("div");
  fault.className = "sd-chart-fault";
  fault.setAttribute("role", "alert");
  el.replaceChildren(box, tools, fault);

  // every change waits for the one before it, so two quick moves can never interleave
  const queue = work => (last = last.then(() => gone ? null : work()).then(
    () => { fault.textContent = ""; },
    error => { fault.textContent = "This chart could not be drawn: " + error.message; }));
  const fills = () => model.get("spec").width === "container";
  const filled = () => Object.values(model.get("data")).some(columns => Object.values(columns).some(c => c.length));
  const finish = () => {
    const picture = box.querySelector("svg, canvas");
    if (picture) { picture.setAttribute("role", "img"); picture.setAttribute("aria-label", model.get("alt")); }
    el.dataset.revision = model.get("revision");
    el.dataset.drawn = performance.now();
  };

  async function embed() {
    if (view) { view.finalize(); view = null; }
    if (!filled()) {                                                   // an empty axis or legend breaks Vega's layout
      if (box.textContent !== model.get("empty")) box.textContent = model.get("empty");
      el.classList.add("sd-empty");
      return finish();
    }
    if (fills() && el.clientWidth < 40) return;                        // hidden tab: the size observer comes back
    box.textContent = ""; el.classList.remove("sd-empty");
    const embedder = await vega();
    if (gone) return;
    const datasets = Object.fromEntries(Object.entries(model.get("data")).map(([n, c]) => [n, rowsOf(c)]));
    sent.clear();
    for (const [name, columns] of Object.entries(model.get("data"))) sent.set(name, JSON.stringify(columns));
    const spec = { ...structuredClone(model.get("spec")), datasets };
    spec.config = merge(pageTheme(), spec.config ?? {});
    width = el.clientWidth;
    const strict = document.querySelector("meta[http-equiv=Content-Security-Policy]") !== null;   // no code and no style out of text: Vega interprets, the page's sheet dresses
    const result = await embedder(box, spec, { actions: false, renderer: model.get("renderer"), ast: strict, defaultStyle: !strict, tooltip: { disableDefaultStyle: strict } });
    if (gone) { result.finalize(); return; }
    view = result.view;
    view.addEventListener("click", (event, item) => {                 // a mark whose row has a `pick` may be chosen
      const index = item?.datum?.pick;
      if (index == null || index < 0) return;
      model.set("picked", { index, serial: (model.get("picked").serial ?? 0) + 1 }); model.save_changes();
    });
    el.dataset.embeds = 1 + Number(el.dataset.embeds ?? 0);
    finish();
  }

  const widest = () => [...box.querySelectorAll(".role-axis")].map(axis => Math.max(0, ...[...axis.querySelectorAll(".role-axis-label text")].map(t => t.textContent.length))).join();

  async function change() {
    if (!view || !filled()) return embed();
    // Vega keeps a definition for every gradient it ever drew: start over before they become many
    if (box.querySelectorAll("linearGradient").length > 300) { sent.clear(); return embed(); }
    for (const [name, columns] of Object.entries(model.get("data"))) {
      const text = JSON.stringify(columns);
      if (sent.get(name) === text) continue;                             // what is the same is not drawn again
      sent.set(name, text);
      view.change(name, view.changeset().remove(() => true).insert(rowsOf(columns)));
    }
    const room = widest();
    await view.runAsync();
    if (widest() !== room) await view.resize().runAsync();             // longer labels need the margin of the axis measured again
    finish();
  }

  const onSpec = () => queue(embed), onData = () => queue(change);
  model.on("change:spec", onSpec);
  model.on("change:revision", onData);

  // JupyterLab sets the theme's name before its style sheet has arrived, so look again a few times
  const repaint = () => { const now = palette().join(); if (now !== ink) { ink = now; queue(embed); } };
  const themes = new MutationObserver(() => [0, 150, 500, 1500, 4000, 10000].forEach(ms => setTimeout(repaint, ms)));
  themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light", "class"] });

  const sizes = new ResizeObserver(() => {
    if (!fills() || el.clientWidth < 40 || (view && el.clientWidth === width)) return;
    width = el.clientWidth;
    queue(async () => {
      if (!view) return embed();
      view.signal("width", box.clientWidth);
      await view.resize().runAsync();
    });
  });
  sizes.observe(el);

  const tool = (label, title, act) => {
    const button = document.createElement("button");
    button.textContent = label; button.title = title; button.setAttribute("aria-label", title);
    button.addEventListener("click", act);
    tools.append(button);
  };
  const name = model.get("file_name") || "chart";
  tool("CSV", `Download the data of this chart (${name}.csv)`, () => save(csvOf(model.get("data")), "text/csv", name + ".csv"));
  const picture = async draw => {                             // on the colour of the page: light text on nothing would be lost elsewhere
    if (!view) return;
    view.background(palette()[3] || "#fff");
    try { await draw(); } finally { view.background("transparent"); }
  };
  const canvas = async () => new Promise(async done => (await view.toCanvas(2)).toBlob(done));
  tool("SVG", `Download this chart as a picture (${name}.svg)`, () => picture(async () => save(await view.toSVG(), "image/svg+xml", name + ".svg")));
  tool("PNG", `Download this chart as pixels (${name}.png)`, () => picture(async () => save(await canvas(), "image/png", name + ".png")));

  queue(embed);
  return () => {
    gone = true;
    themes.disconnect(); sizes.disconnect();
    model.off("change:spec", onSpec); model.off("change:revision", onData);
    if (view) view.finalize();
  };
};
