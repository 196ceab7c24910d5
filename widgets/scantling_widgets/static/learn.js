// Checks on a rendered page: the same right values, slips and feedback that the kernel has, out of each card's data-key; plans against the search's own list.
(() => {
  const apart = (a, b) => a === b ? 1 : a * b > 0 ? Math.max(a / b, b / a) : Infinity;
  const sum = text => {         // the value of a number or of a sum of numbers, NaN where it is neither
    const t = text.match(/(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\*\*|[-+*/()]/g) || [];
    if (t.join("") !== text.replace(/\s+/g, "")) return NaN;
    let i = 0;
    const atom = () => {
      const x = t[i++];
      if (x === "(") { const v = add(); return t[i++] === ")" ? v : NaN; }
      return x === "-" ? -power() : x === "+" ? power() : Number(x);
    };
    const power = () => { const b = atom(); return t[i] === "**" ? (i++, b ** power()) : b; };
    const times = () => { let v = power(); while (t[i] === "*" || t[i] === "/") v = t[i++] === "*" ? v * power() : v / power(); return v; };
    const add = () => { let v = times(); while (t[i] === "+" || t[i] === "-") v = t[i++] === "+" ? v + times() : v - times(); return v; };
    const value = add();
    return i === t.length && Number.isFinite(value) ? value : NaN;
  };
  const plain = s => s.replace(/(?<=\d)[,_ ](?=\d{3}(?!\d))/g, "").replace(/[x×·]/g, "*").replace(/÷/g, "/").replace(/−/g, "-").replace(/_/g, "").replace(/\^/g, "**").trim();
  const LEADS = [/^(?:[\d.,_\s()eE+\-*/×·÷^−]|(?<=\d)\s*x\s*(?=\d))+/, /^[\d.,_\s()+\-*/×·÷^−]+/];
  const read = (text, units) => {
    const typed = text.trim().replace(/^[~≈$ ]+/, "");
    for (const lead of LEADS) {
      const m = lead.exec(typed), value = m ? sum(plain(m[0])) : NaN;
      if (Number.isNaN(value)) continue;
      const rest = typed.slice(m[0].length).replace(/ /g, "").replace(/\.+$/, "");
      return value * (rest ? units[rest] ?? units[rest.toLowerCase()] ?? NaN : 1);
    }
    return NaN;
  };
  const number = (key, text) => {
    const given = read(text, key.units);
    if (Number.isNaN(given)) return ["unreadable", `Not a number in ${key.unit || "plain digits"}.`];
    if (apart(given, key.right) <= key.within * (1 + 1e-9)) return ["right", `Right: ${key.shown}.`];
    const near = key.slips.map(s => [apart(given, s.value), s]).filter(([a, s]) => a <= s.within).sort((x, y) => x[0] - y[0]);
    if (near.length) return ["slip", near[0][1].says];
    const other = key.confusions.find(([factor, within]) => apart(given * factor, key.right) <= within);
    if (other) return ["slip", other[2]];
    if (given * key.right <= 0) return ["wrong", given ? "The answer has the other sign." : "It is not nothing."];
    const off = apart(given, key.right), way = Math.abs(given) > Math.abs(key.right) ? "high" : "low";
    if (off <= Math.max(key.within ** 2, 1.1)) return ["near", `Close, but too ${way}: look for a part left out or rounded away.`];
    return ["wrong", `Too ${way} by a factor of ${off.toPrecision(2)}.`];
  };
  const choice = (key, picked) => {
    if (!picked.length) return ["open", ""];
    if (!key.several) return [picked[0] === key.right ? "right" : "slip", (picked[0] === key.right ? "Right. " : "") + key.says[picked[0]]];
    const wrong = picked.filter(k => !key.right.includes(k)), missing = key.right.filter(k => !picked.includes(k)).length;
    if (!wrong.length && !missing) return ["right", "Right: all of them, and no other."];
    const share = Math.max(0, (picked.length - 2 * wrong.length) / key.right.length);
    return [wrong.length ? "slip" : "near", wrong.map(k => `<b>${k}</b> does not belong: ${key.says[k]}`).join("<br>") + (missing ? `<p>${missing} more to find.</p>` : ""), Math.min(share, 0.75)];
  };
  const explain = (key, text) => {
    const hits = key.points.map(p => p.words.some(w => new RegExp(w, "i").test(text)));
    const list = key.points.map((p, i) => `<li><b>${hits[i] ? "\u2713" : "\u25cb"}</b> ${p.says}</li>`).join("");
    const all = hits.filter(Boolean).length;
    return [all === hits.length ? "right" : all ? "near" : "wrong", `Compare it yourself; words that point to ${all} of ${hits.length}.<ul class="scl-options">${list}</ul>`, all / hits.length];
  };
  const plan = (key, text) => {
    const bare = /^[\d\s,;x×·*\/()]+$/.test(text.trim()) ? text.match(/\d+/g) || [] : [];
    const named = [...text.toLowerCase().matchAll(/([a-z_]+)['"]?(?:\s*[:=]\s*|\s+|(?=\d))(\d+)/g)].map(m => [m[1], m[2]]);
    const said = Object.fromEntries(bare.length === key.names.length ? key.names.map((n, i) => [n, bare[i]]) : named);
    const missing = key.names.filter(n => !(n in said));
    if (missing.length) return ["unreadable", `The plan has to say ${missing.join(", ")} too.`];
    const step = key.steps[key.names.map(n => said[n]).join(",")];
    if (step === undefined) return ["wrong", "No plan with these degrees is legal here: they have to divide devices, heads, layers and batch."];
    if (step === null) return ["wrong", "No plan with these degrees fits into memory."];
    const slower = step / key.best, shown = `${step.toPrecision(3)} s a step against ${key.best.toPrecision(3)} s at the best`;
    return slower <= key.slower ? ["right", `It fits and holds: ${shown}.`] : ["near", `It fits, but is too slow: ${shown}. The notebook says where it goes.`];
  };
  const NAME = { right: "\u2713 Right", slip: "\u2717 A usual slip", near: "\u2248 Nearly", wrong: "\u2717 Not yet", unreadable: "? Not readable" };
  const cards = [...document.querySelectorAll(".scl-card[data-key]")], solved = new Set(), keys = [], log = {};
  const opened = node => JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(node.dataset.key), c => c.charCodeAt(0))));
  const tally = document.createElement("div"), rubric = document.querySelector(".scl-rubric[data-key]"), card_of = rubric && opened(rubric);
  tally.className = "scl-tally"; tally.setAttribute("role", "status");
  const earned = key => {       // as a session in the kernel counts: the best answer, less for each try before it and each hint
    const { tries, hints, spent } = log[key.id], best = Math.max(0, ...tries.map(t => t.credit));
    const lost = card_of.costs.try * tries.findIndex(t => t.credit === best) + card_of.costs.hint * (spent ?? hints);
    return best && Math.max(best * card_of.costs.least, best - lost);
  };
  const score = () => {
    if (!card_of || !keys.some(k => log[k.id].tries.length)) return;
    const mean = list => list.reduce((sum, k) => sum + earned(k), 0) / list.length, rows = [];
    let points = 0, most = 0;
    for (const axis of card_of.axes) {
      const parts = [false, true].map(staff => keys.filter(k => k.axis === axis.key && k.staff === staff)).filter(l => l.length);
      const got = parts.reduce((sum, l) => sum + mean(l), 0), level = card_of.levels.filter(l => got / parts.length >= l.from - 1e-9).at(-1);
      points += got; most += parts.length;
      rows.push(`<tr><td class="t">${axis.name}</td><td>${got.toFixed(1)} of ${parts.length}</td><td class="t">${axis[level.name]}</td></tr>`);
    }
    const level = card_of.levels.filter(l => points / most >= l.from - 1e-9).at(-1);
    const weak = keys.filter(k => earned(k) < 1).sort((a, b) => earned(a) - earned(b)).slice(0, 3);
    const why = k => !log[k.id].tries.length ? "not answered" : !solved.has(k.id) ? "not right yet" : `right, after ${log[k.id].tries.length} tries and ${log[k.id].spent} hints`;
    const redo = weak.map(k => `<li><code>${k.id}</code>: ${why(k)}. ${card_of.axes.find(a => a.key === k.axis).redo}</li>`).join("");
    rubric.innerHTML = `<p><strong>${points.toFixed(1)} of ${most} points: ${level.name}</strong>, ${level.says}.</p><table class="scl-table"><tr><th class="t">axis</th><th>points</th>`
      + `<th class="t">what it shows</th></tr>${rows.join("")}</table>` + (redo ? `<p><strong>Do again</strong></p><ul>${redo}</ul>` : "<p><strong>Nothing to do again.</strong></p>");
  };
  const count = () => { tally.textContent = `${solved.size} of ${checked} right`; score(); };
  let checked = 0;
  for (const card of cards) {
    const key = opened(card), mine = log[key.id] = { tries: [], hints: 0 };
    keys.push(key);
    card.addEventListener("toggle", event => {
      if (event.target.open) mine.hints = Math.max(mine.hints, event.target.matches(".scl-answer") ? key.hints : Number(event.target.querySelector("summary").textContent.match(/\d+/)[0]));
    }, true);
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
      const [status, says, share] = get(), credit = share ?? { right: 1, near: 0.5 }[status] ?? 0;
      if (!["open", "unreadable"].includes(status) && mine.tries.at(-1)?.says !== says) mine.tries.push({ says, credit });
      out.innerHTML = status === "open" ? "" : `<div class="scl-verdict ${status}" role="status"><p><b class="mark">${NAME[status]}</b></p>${says}</div>`;
      if (status === "right") { solved.add(key.id); mine.spent ??= mine.hints; }
      count();
    });
    card.insertBefore(row, first); card.insertBefore(out, first);
  }
  if (checked) { count(); document.body.append(tally); }
})();
