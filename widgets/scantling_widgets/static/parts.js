// The key of a picture: colour, name, amount. Amounts are patched in place and open to their formula.

kinds.parts = ({ model, el }) => {
  el.classList.add("sd-parts-host");
  const box = document.createElement("div");
  box.className = "sd-parts"; box.setAttribute("role", "list");
  const place = document.createElement("div");
  el.replaceChildren(place);
  function frame() {
    const title = model.get("title");
    if (!title) return place.replaceChildren(box);
    const folded = document.createElement("details"), head = sheetPart("summary", "sd-fold", folded);   // the picture names its parts: the list unfolds
    head.textContent = title;
    folded.append(box);
    place.replaceChildren(folded);
  }
  frame();
  model.on("change:title", frame);
  const sheet = sheetOf(el);
  let lines = [], shape = "", asked = null;

  function build(entries) {
    lines = entries.map((entry, index) => {
      const row = sheetPart("div", "", box);
      row.setAttribute("role", "listitem");
      const mark = sheetPart("i", "", row), name = sheetPart("span", "", row);
      const amount = sheetPart(entry.key ? "button" : "b", entry.key ? "sd-open" : "", row);
      if (entry.key) {
        amount.type = "button"; amount.setAttribute("aria-haspopup", "dialog"); amount.title = "Open the formula of this number";
        amount.addEventListener("click", () => {
          if (sheet.open() && sheet.anchor() === amount) return sheet.leave();
          asked = amount;
          model.set("asked", { key: model.get("entries")[index].key, index, serial: (model.get("asked").serial ?? 0) + 1 }); model.save_changes();
        });
      }
      return { row, mark, name, amount };
    });
  }

  function patch() {
    const entries = model.get("entries"), now = entries.map(e => e.name + (e.key ? "+" : "")).join("|");
    if (now !== shape) { shape = now; sheet.hide(); box.replaceChildren(); build(entries); }
    entries.forEach((entry, i) => {
      const { row, mark, name, amount } = lines[i];
      row.classList.toggle("sd-nil", Boolean(entry.nil));
      mark.style.background = entry.colour;
      if (name.textContent !== entry.name) name.textContent = entry.name;
      if (amount.textContent !== entry.text) amount.textContent = entry.text;
      if (entry.key) amount.setAttribute("aria-label", entry.name + " " + entry.text);
    });
  }
  const answer = () => { if (asked?.isConnected && model.get("detail").title) sheet.show(model.get("detail"), asked); };
  model.on("change:entries", patch);
  model.on("change:detail", answer);
  patch();
  return () => { model.off("change:entries", patch); model.off("change:detail", answer); };
};
