// The column of inputs: native sliders, lists and boxes, patched in place. A control is a part of its own whose row the
// form draws. Each change goes to the kernel as one message {field, value, final, serial}; one message is in flight.

kinds.control = () => {};

const LONG_MS = 250, REST_MS = 200;

kinds.form = ({ model, el, draw, part }) => {
  const rows = new Map();           // field -> what brings its row up to date
  const late = new Set();           // rows that could not follow while the user held them
  let serial = 0, holding = null, layout = "";
  let begun = 0, cost = 0, waits = null;   // when the last value was let go, how long its answer took [ms], one that waits
  el.classList.add("sd-form");
  const own = "sd" + Math.random().toString(36).slice(2, 8);

  // arrows, Home, letters and Enter belong to the control that has the focus, not to the notebook around the desk
  const keep = event => { if (!event.ctrlKey && !event.metaKey && event.key !== "Tab") event.stopPropagation(); };
  let root = null;
  const scroller = () => root?.closest(".jp-WindowedPanel-outer, .lm-BoxPanel-child");            // of JupyterLab, of the page
  const fit = () => root?.style.setProperty("--sd-view", ((scroller()?.clientHeight || innerHeight) - 12) + "px");
  const sizes = new ResizeObserver(fit);
  requestAnimationFrame(() => {
    root = el.closest(".sd-desk") ?? el;
    root.addEventListener("keydown", keep);
    root.dataset.lmSuppressShortcuts = "true";
    if (root.querySelector(".sd-body")) {                             // the whole desk, not a part of it
      root.closest(".jp-OutputArea-child")?.classList.add("sd-full");
      root.closest(".jp-OutputArea")?.classList.add("sd-area");
    }
    sizes.observe(scroller() ?? document.documentElement);
    fit();
  });

  function propose(field, value, final) {
    clearTimeout(waits);
    begun = final ? performance.now() : 0;
    serial += 1;
    late.add(field);
    el.dataset.sent = serial;
    model.set("proposal", { field, value, final, serial });
    model.save_changes();
  }

  // a value that is let go; where its answer takes long, once the keys rest, so that ten steps are not ten searches
  function settle(field, value) {
    if (cost < LONG_MS) return propose(field, value, true);
    clearTimeout(waits);
    el.dataset.sent = serial + 1;
    waits = setTimeout(() => propose(field, value, true), REST_MS);
  }

  const make = (tag, cls, parent) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (parent) parent.append(node);
    return node;
  };

  // a field that the user holds, or whose last word has not come back yet, keeps what the user sees
  const busy = field => holding === field || (!model.get("lost") && model.get("proposal").field === field && model.get("answered") < serial);

  function slider(spec, row, id) {
    const input = make("input", "sd-range", row);
    input.type = "range"; input.id = id; input.step = 1; input.min = 0;
    const out = make("output", "sd-out", row);
    out.setAttribute("for", id);
    let now = spec;
    if (spec.typed) typing(out, row, () => now);
    const say = () => {
      const option = now.options[input.valueAsNumber] ?? { text: "" };
      out.textContent = option.text;
      input.setAttribute("aria-valuetext", option.long ?? option.text);
      const max = Math.max(1, Number(input.max));
      input.style.setProperty("--sd-fill", (100 * input.valueAsNumber / max) + "%");
    };
    input.addEventListener("pointerdown", () => { holding = now.field; });
    addEventListener("pointerup", () => { if (holding === now.field) holding = null; });
    input.addEventListener("input", () => { say(); propose(now.field, now.options[input.valueAsNumber].value, false); });
    input.addEventListener("change", () => { holding = null; settle(now.field, now.options[input.valueAsNumber].value); });
    return next => {
      if (busy(next.field)) return;
      now = next;
      if (input.max !== String(Math.max(0, next.options.length - 1)) || !input.dataset.texts) input.dataset.texts = JSON.stringify(next.options.map(o => o.text));
      input.max = Math.max(0, next.options.length - 1);
      input.value = Math.max(0, next.options.findIndex(o => o.value === next.value));
      input.disabled = Boolean(next.disabled);
      say();
    };
  }

  // the value beside a slider as a box: a number is typed there, and the slider follows
  function typing(out, row, current) {
    const box = make("input", "sd-out sd-typed", row);
    box.type = "text"; box.inputMode = "decimal"; box.autocomplete = "off";
    box.setAttribute("aria-label", current().label + ", typed");
    box.title = "Type a number: 24,000, 30B, 1.5T";
    out.classList.add("sd-behind");
    // what was typed stands until it is answered
    const show = () => { if (document.activeElement !== box && !busy(current().field)) box.value = current().fault ? current().typed : out.textContent; };
    new MutationObserver(show).observe(out, { childList: true, characterData: true, subtree: true });
    box.addEventListener("focus", () => { box.value = current().typed; box.select(); });
    box.addEventListener("blur", show);
    box.addEventListener("keydown", event => {
      if (event.key === "Enter") box.blur();
      if (event.key === "Escape") { box.value = current().typed; box.blur(); }
    });
    box.addEventListener("change", () => { if (box.value.trim() && box.value.trim() !== current().typed) propose(current().field, box.value.trim(), true); });
    row.classList.add("sd-has-box");
    row.showTyped = show;
  }

  function list(spec, row, id) {
    const select = make("select", "sd-select", row);
    select.id = id;
    let now = spec, drawn = "";
    const ask = () => {
      if (!now.asks) return;
      model.set("asked", { field: now.field, serial: (model.get("asked").serial ?? 0) + 1 });
      model.save_changes();
    };
    select.addEventListener("pointerenter", ask);
    select.addEventListener("focus", ask);
    select.addEventListener("change", () => propose(now.field, now.options[Number(select.value)].value, true));
    return next => {
      if (busy(next.field)) return;
      now = next;
      const key = JSON.stringify(next.options);
      if (key !== drawn) {
        drawn = key;
        const groups = new Map();
        select.replaceChildren();
        for (const [place, o] of next.options.entries()) {
          const option = make("option");
          option.value = place;                                        // groups may stand in another order than the list
          option.textContent = o.text; option.disabled = Boolean(o.reason);
          if (o.reason) option.textContent += " — " + o.reason;
          let parent = select;
          if (o.group) {
            parent = groups.get(o.group);
            if (!parent) { parent = make("optgroup", "", select); parent.label = o.group; groups.set(o.group, parent); }
          }
          parent.append(option);
        }
      }
      select.value = next.options.findIndex(o => o.value === next.value);
      select.classList.toggle("sd-pinned", Boolean(next.pinned));
      select.disabled = Boolean(next.disabled);
    };
  }

  function number(spec, row, id) {
    const input = make("input", "sd-number", row);
    input.id = id; input.type = "text"; input.inputMode = "decimal"; input.autocomplete = "off";
    if (spec.input_kind === "text") input.removeAttribute("inputmode");
    const unit = make("span", "sd-unit", row);
    let now = spec;
    input.addEventListener("focus", () => { holding = now.field; });
    input.addEventListener("blur", () => { if (holding === now.field) holding = null; });
    input.addEventListener("keydown", event => { if (event.key === "Enter") input.dispatchEvent(new Event("change")); });
    input.addEventListener("change", () => { holding = null; propose(now.field, input.value.trim() === "" ? null : input.value.trim(), true); });
    return next => {
      if (busy(next.field)) return;
      now = next;
      input.value = next.value ?? "";
      input.placeholder = next.placeholder ?? "";
      unit.textContent = next.unit ?? "";
      input.disabled = Boolean(next.disabled);
    };
  }

  const made = { slider, list, number, text: number };

  function fresh(child) {
    const spec = child.state, row = draw(child.id), id = own + "-" + spec.field.replaceAll(".", "-");
    row.className = "sd-row sd-kind-" + spec.input_kind.replace("text", "number") + (spec.wide ? " sd-wide" : "");
    row.dataset.field = spec.field;
    const label = make("label", "", row);
    label.htmlFor = id; label.textContent = spec.label;
    const fill = made[spec.input_kind](spec, row, id);
    const control = row.querySelector("input, select");
    const fault = make("div", "sd-fault", row);
    fault.id = id + "-fault";
    rows.set(spec.field, () => {
      const next = child.state, wrong = next.fault;
      if (busy(next.field)) late.add(next.field);
      fill(next);
      label.title = control.title = next.help;
      row.classList.toggle("sd-wrong", Boolean(wrong));
      control.setAttribute("aria-invalid", wrong ? "true" : "false");
      if (wrong) control.setAttribute("aria-describedby", fault.id); else control.removeAttribute("aria-describedby");
      if (wrong && wrong !== fault.textContent && row.closest("details")) row.closest("details").open = true;
      fault.textContent = wrong;
      row.showTyped?.();
    });
    child.on("change", rows.get(spec.field));
    rows.get(spec.field)();
    return row;
  }

  const drawn = new Map();          // field -> its row on the page
  function build(groups) {
    for (const id of model.get("children")) if (!drawn.has(part(id).get("field"))) drawn.set(part(id).get("field"), fresh(part(id)));
    el.replaceChildren(...groups.map(group => {
      const box = make(group.folded ? "details" : "fieldset", "sd-group sd-" + (group.shape ?? "rows"));
      const title = group.title && make(group.folded ? "summary" : "legend", "", box);
      if (title) title.textContent = group.title;
      make("div", "sd-rows", box).append(...group.fields.map(field => drawn.get(field)));
      return box;
    }));
  }

  function patch() {
    if (begun && model.get("answered") >= serial) { cost = performance.now() - begun; begun = 0; }
    const groups = model.get("groups"), shape = JSON.stringify(groups);
    if (shape !== layout) { layout = shape; build(groups); }
    for (const field of [...late]) { late.delete(field); rows.get(field)?.(); }
    el.dataset.answered = model.get("answered");
    el.dataset.drawn = model.get("drawn");
    el.dataset.shown = model.get("shown");
  }
  const drop = () => { serial = model.get("answered"); holding = null; patch(); for (const row of rows.values()) row(); };      // nobody answers: back to the last answer
  model.on("change:lost", drop);
  model.on("change:groups change:answered change:drawn change:shown", patch);
  serial = model.get("answered");
  patch();
  return () => { root?.removeEventListener("keydown", keep); sizes.disconnect(); model.off("change:groups change:answered change:drawn change:shown", patch); };
};
