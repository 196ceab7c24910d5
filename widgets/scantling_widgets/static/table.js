// A table that sorts in the browser, downloads as CSV, and tells the kernel which row was chosen.

kinds.table = ({ model, el }) => {
  let sort = { key: "", down: false };
  el.classList.add("sd-table-host");
  const tools = document.createElement("div");
  tools.className = "sd-table-tools";
  const note = document.createElement("span");
  const csv = document.createElement("button");
  csv.type = "button"; csv.textContent = "CSV";
  tools.append(note, csv);
  const scroller = document.createElement("div");
  scroller.className = "sd-table-scroll"; scroller.tabIndex = 0;
  el.replaceChildren(tools, scroller);
  const sheet = sheetOf(el);
  let asked = null;

  // a name of dots and underscores goes on in the next line behind one of them
  const broken = text => /^[a-z][\w.]*[._]\w+$/.test(text) ? text.split(/(?<=[._])/).flatMap((part, i) => i ? [document.createElement("wbr"), part] : [part]) : [text];
  const text = cell => cell && typeof cell === "object" ? cell.text : cell == null ? "–" : String(cell);
  const rank = cell => cell && typeof cell === "object" ? cell.sort : cell;

  function draw() {
    const columns = model.get("columns"), rows = model.get("rows").map((cells, index) => ({ cells, index }));
    note.textContent = model.get("note");
    scroller.setAttribute("role", "region"); scroller.setAttribute("aria-label", model.get("label"));
    csv.setAttribute("aria-label", "Download as CSV: " + model.get("label"));
    csv.hidden = !rows.length;
    if (sort.key) {
      const at = columns.findIndex(c => c.key === sort.key);
      if (at >= 0) rows.sort((a, b) => {
        const x = rank(a.cells[at]), y = rank(b.cells[at]);
        const order = x == null ? 1 : y == null ? -1 : x < y ? -1 : x > y ? 1 : 0;
        return sort.down ? -order : order;
      });
    }
    const table = document.createElement("table");
    table.className = "sd-table";
    const head = table.createTHead().insertRow();
    const sortable = model.get("sortable");
    for (const column of columns) {
      const th = document.createElement("th");
      th.scope = "col"; th.className = column.align === "left" ? "sd-left" : "";
      if (column.hint) th.title = column.hint;
      if (sortable) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = column.label + (sort.key === column.key ? (sort.down ? " ▾" : " ▴") : "");
        th.setAttribute("aria-sort", sort.key === column.key ? (sort.down ? "descending" : "ascending") : "none");
        button.addEventListener("click", () => { sort = { key: column.key, down: sort.key === column.key ? !sort.down : false }; draw(); });
        th.append(button);
      } else th.textContent = column.label;
      head.append(th);
    }
    const body = table.createTBody();
    const action = model.get("action"), chosen = model.get("chosen");
    for (const { cells, index } of rows) {
      const tr = body.insertRow();
      if (index === chosen) tr.className = "sd-chosen";
      cells.forEach((cell, at) => {
        const td = tr.insertCell();
        td.className = (columns[at]?.align === "left" ? "sd-left" : "") + (columns[at]?.wrap ? " sd-wrap" : "");
        if (at === 0 && action) {
          const button = document.createElement("button");
          button.type = "button"; button.className = "sd-link"; button.textContent = text(cell);
          button.setAttribute("aria-label", `${action}: ${text(cell)}`);
          button.title = action;
          button.addEventListener("click", () => { model.set("picked", { index, serial: (model.get("picked").serial ?? 0) + 1 }); model.save_changes(); });
          td.append(button);
        } else if (cell?.key) {
          const button = document.createElement("button");
          button.type = "button"; button.className = "sd-open"; button.textContent = text(cell);
          button.title = "Open the formula of this number"; button.setAttribute("aria-haspopup", "dialog");
          button.addEventListener("click", () => {
            if (sheet.open() && sheet.anchor() === button) return sheet.leave();
            asked = button;
            model.set("asked", { key: cell.key, index, serial: (model.get("asked").serial ?? 0) + 1 }); model.save_changes();
          });
          td.append(button);
        } else td.append(...broken(text(cell)));
        if (cell && typeof cell === "object") { if (cell.mark) td.dataset.mark = cell.mark; if (cell.hint) td.title = cell.hint; }
      });
    }
    scroller.classList.toggle("sd-long", rows.length > 24);
    const top = scroller.scrollTop;
    if (rows.length) scroller.replaceChildren(table); else scroller.textContent = model.get("empty");
    scroller.scrollTop = top;
    el.dataset.rows = rows.length;
  }
  csv.addEventListener("click", () => {
    const quote = value => /[",\n]/.test(value) ? '"' + value.replaceAll('"', '""') + '"' : value;
    const raw = cell => cell && typeof cell === "object" ? String(cell.sort ?? cell.text) : cell == null ? "" : String(cell);
    const lines = [model.get("columns").map(c => quote(c.key)).join(","), ...model.get("rows").map(r => r.map(c => quote(raw(c))).join(","))];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = (model.get("file_name") || "table") + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  const answer = () => { if (asked?.isConnected && model.get("detail").title) sheet.show(model.get("detail"), asked); };
  const redraw = () => { if (sheet.open()) sheet.hide(); draw(); };
  model.on("change:rows change:columns change:chosen change:note", redraw);
  model.on("change:detail", answer);
  draw();
  return () => { model.off("change:rows change:columns change:chosen change:note", redraw); model.off("change:detail", answer); };
};
