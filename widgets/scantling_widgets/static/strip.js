// The strip of headline numbers. Text is patched, never rebuilt, so nothing flickers and the keyboard focus stays.
// A number opens to its formula, its inputs, its source and its convention.

function render({ model, el }) {
  el.classList.add("sd-strip-host");
  const strip = document.createElement("div");
  strip.className = "sd-strip";
  strip.setAttribute("role", "group");
  strip.setAttribute("aria-label", "Headline numbers");
  const sheet = document.createElement("div");
  sheet.className = "sd-sheet"; sheet.hidden = true; sheet.tabIndex = -1;
  sheet.setAttribute("role", "dialog");
  el.replaceChildren(strip, sheet);
  const cards = new Map();
  let opener = null;

  const part = (tag, cls, parent) => { const n = document.createElement(tag); n.className = cls; parent.append(n); return n; };
  const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

  function card(key) {
    const button = part("button", "sd-kpi", strip);
    button.type = "button"; button.dataset.kpi = key;
    button.setAttribute("aria-haspopup", "dialog");
    const label = part("span", "sd-kpi-label", button), value = part("span", "sd-kpi-value", button);
    const number = part("b", "", value), unit = part("i", "", value);
    const note = part("span", "sd-kpi-note", button), delta = part("span", "sd-kpi-delta", button);
    button.addEventListener("click", () => {
      if (model.get("opened") === key) return close();
      opener = button;
      model.set("opened", key); model.save_changes();
    });
    return item => {
      put(label, item.label); put(number, item.value); put(unit, item.unit ?? ""); put(note, item.note ?? ""); put(delta, item.delta ?? "");
      button.dataset.state = item.state ?? "";
      delta.dataset.sense = item.sense ?? "";
      button.title = item.hint ?? "";
    };
  }

  function patch() {
    const items = model.get("items");
    for (const item of items) {
      if (!cards.has(item.key)) cards.set(item.key, card(item.key));
      cards.get(item.key)(item);
    }
    el.dataset.revision = model.get("revision");
  }

  function close() {
    model.set("opened", ""); model.save_changes();
    opener?.focus();
  }

  function open() {
    const sheetFor = model.get("opened"), detail = model.get("detail");
    for (const node of strip.children) node.setAttribute("aria-expanded", String(node.dataset.kpi === sheetFor));
    if (!sheetFor || !detail.title) { sheet.hidden = true; return; }
    const fresh = sheet.hidden;
    sheet.replaceChildren();
    sheet.setAttribute("aria-label", detail.title);
    const head = part("div", "sd-sheet-head", sheet);
    put(part("b", "", head), detail.title);
    put(part("span", "", head), detail.value ?? "");
    const shut = part("button", "sd-sheet-close", head);
    shut.type = "button"; shut.textContent = "×"; shut.setAttribute("aria-label", "Close"); shut.addEventListener("click", close);
    const grid = part("dl", "", sheet);
    for (const [term, text] of detail.lines ?? []) {
      put(part("dt", "", grid), term);
      put(part("dd", term === "Formula" || term === "With these values" ? "sd-mono" : "", grid), text);
    }
    sheet.hidden = false;
    const from = strip.querySelector(`[data-kpi="${sheetFor}"]`);
    if (from) sheet.style.left = Math.max(0, Math.min(from.offsetLeft, el.clientWidth - 480)) + "px";
    if (fresh) sheet.focus();
  }
  el.addEventListener("keydown", event => { if (event.key === "Escape" && !sheet.hidden) { event.stopPropagation(); close(); } });

  model.on("change:items change:revision", patch);
  model.on("change:opened change:detail", open);
  patch(); open();
  return () => { model.off("change:items change:revision", patch); model.off("change:opened change:detail", open); };
}
export default { render };
