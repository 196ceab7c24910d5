// A card before a kernel, which judges: `given` is what the reader did, {serial, answer, mine, hints}, `said` what the kernel says to it.
export default {
  render({ model, el }) {
    el.innerHTML = model.get("html");
    const key = model.get("key"), tell = done => {
      model.set("given", { serial: (model.get("given").serial ?? 0) + 1, ...done });
      model.save_changes();
    };
    const { given, out, say } = controls(el.querySelector(".scl-card"), key, answer => tell({ answer }), hints => tell({ hints }));
    const fill = () => {
      say(model.get("said"));
      const points = [...out.querySelectorAll(".scl-options li")];       // the words were a guess, the reader decides
      const boxes = points.map(li => {
        const box = document.createElement("input"), label = document.createElement("label"), mark = li.querySelector("b");
        box.type = "checkbox"; box.checked = mark.textContent === "\u2713"; mark.remove();
        label.append(box, ...li.childNodes); li.append(label);
        return box;
      });
      for (const box of boxes) box.addEventListener("change", () => tell({ answer: given(), mine: boxes.flatMap((b, i) => b.checked ? [i + 1] : []) }));
      if (boxes.length) points[0].parentNode.insertAdjacentHTML("beforebegin", "<p>Tick what you did say:</p>");
    };
    // a notebook's shortcuts are not for what is typed here
    el.addEventListener("keydown", event => { if (!event.ctrlKey && !event.metaKey && event.key !== "Tab") event.stopPropagation(); });
    model.on("change:said", fill);
    fill();
  },
};
