// The strip of headline numbers. Text is patched, never rebuilt, so nothing flickers and the keyboard focus stays.
// A number opens to its formula, its inputs, its source and its convention.

kinds.strip = ({ model, el }) => {
  el.classList.add("sd-strip-host");
  const strip = document.createElement("div");
  strip.className = "sd-strip";
  strip.setAttribute("role", "group");
  strip.setAttribute("aria-label", "Headline numbers");
  el.replaceChildren(strip);
  const sheet = sheetOf(el, () => { model.set("opened", ""); model.save_changes(); });
  const cards = new Map();

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
      if (model.get("opened") === key) return sheet.leave();
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
    const keys = items.map(item => item.key);
    const gone = [...cards.keys()].filter(key => !keys.includes(key));
    for (const key of gone) { strip.querySelector(`[data-kpi="${key}"]`).remove(); cards.delete(key); }   // a number that the design has none of
    for (const item of items) {
      if (!cards.has(item.key)) cards.set(item.key, card(item.key));
      cards.get(item.key)(item);
    }
    if ([...strip.children].some((node, i) => node.dataset.kpi !== keys[i])) strip.append(...keys.map(key => strip.querySelector(`[data-kpi="${key}"]`)));
    el.dataset.revision = model.get("revision");
  }

  function open() {
    const key = model.get("opened"), detail = model.get("detail");
    for (const node of strip.children) node.setAttribute("aria-expanded", String(node.dataset.kpi === key));
    if (!key) return sheet.hide();
    if (detail.title) sheet.show(detail, strip.querySelector(`[data-kpi="${key}"]`));
  }

  model.on("change:items change:revision", patch);
  model.on("change:opened change:detail", open);
  patch(); open();
  return () => { model.off("change:items change:revision", patch); model.off("change:opened change:detail", open); };
};
