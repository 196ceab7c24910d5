// Checks on a rendered page: the same right values, slips and feedback that the kernel has, out of each card's data-key; plans against the search's own list.
(() => {
  const SUFFIX = { k: 1e3, K: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12, P: 1e15, E: 1e18, thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12 };
  const bare = s => s.replace(/ /g, "").toLowerCase();
  const apart = (a, b) => a === b ? 1 : a * b > 0 ? Math.max(a / b, b / a) : Infinity;
  const read = (text, unit) => {
    const m = /^\s*~?\s*\$?\s*([-+\u2212]?\d[\d,_ ]*(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+\u2212]?\.\d+)\s*([\s\S]*)$/.exec(text);
    if (!m) return NaN;
    const value = Number(m[1].replace(/[,_ ]/g, "").replace("\u2212", "-")), rest = m[2].trim().replace(/\.$/, "");
    if (!rest || bare(rest) === bare(unit) || bare(rest) === bare(unit).replace(/s$/, "")) return value;
    const [head, ...tail] = rest.split(/\s+/);
    return head in SUFFIX && ["", bare(unit)].includes(bare(tail.join(" "))) ? value * SUFFIX[head] : NaN;
  };
  const number = (key, text) => {
    const given = read(text, key.unit || "");
    if (Number.isNaN(given)) return ["unreadable", `Not a number in ${key.unit || "plain digits"}.`];
    if (apart(given, key.right) <= key.within * (1 + 1e-9)) return ["right", `Right: ${key.shown}.`];
    const near = key.slips.map(s => [apart(given, s.value), s]).filter(([a, s]) => a <= s.within).sort((x, y) => x[0] - y[0]);
    if (near.length) return ["slip", near[0][1].says];
    const off = apart(given, key.right), way = Math.abs(given) > Math.abs(key.right) ? "high" : "low";
    if (off <= Math.max(key.within ** 2, 1.1)) return ["near", `Close, but too ${way}: look for a part left out or rounded away.`];
    return ["wrong", Number.isFinite(off) ? `Too ${way} by a factor of ${off.toPrecision(2)}.` : "The wrong sign, or nothing at all."];
  };
  const choice = (key, picked) => {
    if (!picked.length) return ["open", ""];
    if (!key.several) return [picked[0] === key.right ? "right" : "slip", (picked[0] === key.right ? "Right. " : "") + key.says[picked[0]]];
    const wrong = picked.filter(k => !key.right.includes(k)), missing = key.right.filter(k => !picked.includes(k)).length;
    if (!wrong.length && !missing) return ["right", "Right: all of them, and no other."];
    return [wrong.length ? "slip" : "near", wrong.map(k => `<b>${k}</b> does not belong: ${key.says[k]}`).join("<br>") + (missing ? `<p>${missing} more to find.</p>` : "")];
  };
  const explain = (key, text) => {
    const hits = key.points.map(p => p.words.some(w => new RegExp(w, "i").test(text)));
    const list = key.points.map((p, i) => `<li><b>${hits[i] ? "\u2713" : "\u25cb"}</b> ${p.says}</li>`).join("");
    const all = hits.filter(Boolean).length;
    return [all === hits.length ? "right" : all ? "near" : "wrong", `Compare it yourself; words that point to ${all} of ${hits.length}.<ul class="scl-options">${list}</ul>`];
  };
  const plan = (key, text) => {
    const said = Object.fromEntries([...text.matchAll(/([a-z_]+)\s*[:= ]\s*(\d+)/g)].map(m => [m[1], m[2]]));
    const missing = key.names.filter(n => !(n in said));
    if (missing.length) return ["unreadable", `The plan has to say ${missing.join(", ")} too.`];
    const step = key.steps[key.names.map(n => said[n]).join(",")];
    if (step === undefined) return ["wrong", "No plan with these degrees is legal here: they have to divide devices, heads, layers and batch."];
    if (step === null) return ["wrong", "No plan with these degrees fits into memory."];
    const slower = step / key.best, shown = `${step.toPrecision(3)} s a step against ${key.best.toPrecision(3)} s at the best`;
    return slower <= key.slower ? ["right", `It fits and holds: ${shown}.`] : ["near", `It fits, but is too slow: ${shown}. The notebook says where it goes.`];
  };
  const NAME = { right: "\u2713 Right", slip: "\u2717 A usual slip", near: "\u2248 Nearly", wrong: "\u2717 Not yet", unreadable: "? Not readable" };
  const cards = [...document.querySelectorAll(".scl-card[data-key]")], solved = new Set();
  const tally = document.createElement("div");
  tally.className = "scl-tally"; tally.setAttribute("role", "status");
  const count = () => { tally.textContent = `${solved.size} of ${checked} right`; };
  let checked = 0;
  for (const card of cards) {
    const key = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(card.dataset.key), c => c.charCodeAt(0))));
    const row = document.createElement("form"), out = document.createElement("div"), button = document.createElement("button"), first = card.querySelector("details");
    checked += 1;
    row.className = "scl-try"; button.textContent = "Check";
    let get;
    if (key.kind === "choice") {
      const boxes = [...card.querySelectorAll(".scl-options li")].slice(0, Object.keys(key.says).length).map((li, i) => {
        const box = document.createElement("input"), label = document.createElement("label");
        box.type = key.several ? "checkbox" : "radio"; box.name = key.id; box.value = Object.keys(key.says)[i];
        label.append(box, ...li.childNodes); li.append(label);
        return box;
      });
      get = () => choice(key, boxes.filter(b => b.checked).map(b => b.value));
    } else {
      const field = document.createElement(key.kind === "explain" ? "textarea" : "input");
      if (key.kind !== "explain") field.type = "text";
      field.placeholder = key.wanted; field.setAttribute("aria-label", `Answer to ${key.id}: ${key.wanted}`);
      row.append(field);
      get = () => field.value.trim() ? { explain, number, plan }[key.kind](key, field.value) : ["open", ""];
    }
    row.append(button);
    row.addEventListener("submit", event => {
      event.preventDefault();
      const [status, says] = get();
      out.innerHTML = status === "open" ? "" : `<div class="scl-verdict ${status}" role="status"><p><b class="mark">${NAME[status]}</b></p>${says}</div>`;
      if (status === "right") solved.add(key.id);
      count();
    });
    card.insertBefore(row, first); card.insertBefore(out, first);
  }
  if (checked) { count(); document.body.append(tally); }
})();
