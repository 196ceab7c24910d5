// The column of inputs: native sliders, lists and boxes, patched in place. Each change goes to the kernel as one
// message {field, value, final, serial}; the base model keeps one message in flight and drops those in between.

kinds.form = ({ model, el }) => {
  const rows = new Map();           // field -> {spec, update}
  let serial = 0, holding = null, layout = "";
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
    root.closest(".jp-OutputArea-child")?.classList.add("sd-full");
    root.closest(".jp-OutputArea")?.classList.add("sd-area");
    sizes.observe(scroller() ?? document.documentElement);
    fit();
  });

  function propose(field, value, final) {
    serial += 1;
    el.dataset.sent = serial;
    model.set("proposal", { field, value, final, serial });
    model.save_changes();
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
    input.addEventListener("change", () => { holding = null; propose(now.field, now.options[input.valueAsNumber].value, true); });
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

  const kinds = { slider, list, number };

  function build(groups) {
    rows.clear();
    const parts = [];
    for (const group of groups) {
      const box = make(group.folded ? "details" : "fieldset", "sd-group sd-" + (group.shape ?? "rows"));
      const title = make(group.folded ? "summary" : "legend", "", box);
      title.textContent = group.title;
      const body = make("div", "sd-rows", box);
      for (const spec of group.fields) {
        const row = make("div", "sd-row sd-kind-" + spec.kind + (spec.wide ? " sd-wide" : ""), body);
        row.dataset.field = spec.field;
        const id = own + "-" + spec.field.replaceAll(".", "-");
        const label = make("label", "", row);
        label.htmlFor = id; label.textContent = spec.label;
        const fill = kinds[spec.kind](spec, row, id);
        const control = row.querySelector("input, select");
        const fault = make("div", "sd-fault", row);
        fault.id = id + "-fault";
        rows.set(spec.field, next => {
          fill(next);
          label.title = control.title = next.help ?? "";
          const wrong = next.fault ?? "";
          row.classList.toggle("sd-wrong", Boolean(wrong));
          control.setAttribute("aria-invalid", wrong ? "true" : "false");
          if (wrong) control.setAttribute("aria-describedby", fault.id); else control.removeAttribute("aria-describedby");
          fault.textContent = wrong;
        });
      }
      parts.push(box);
    }
    el.replaceChildren(...parts);
  }

  function patch() {
    const groups = model.get("groups"), values = model.get("values");
    const shape = JSON.stringify(groups.map(g => [g.title, g.folded, g.fields.map(f => [f.field, f.kind, f.label])]));
    if (shape !== layout) { layout = shape; build(groups); }
    for (const group of groups) for (const field of group.fields) rows.get(field.field)({ ...field, ...values[field.field] });
    el.dataset.answered = model.get("answered");
    el.dataset.drawn = model.get("drawn");
    el.dataset.shown = model.get("shown");
  }
  const drop = () => { serial = model.get("answered"); holding = null; patch(); };      // nobody answers: back to the last answer
  model.on("change:lost", drop);
  model.on("change:groups change:values change:answered change:drawn change:shown", patch);
  serial = model.get("answered");
  patch();
  return () => { root?.removeEventListener("keydown", keep); sizes.disconnect(); model.off("change:groups change:values change:answered change:drawn change:shown", patch); };
};
