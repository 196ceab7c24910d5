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
  const GROUPS = /^[1-9]\d{0,2}([,.'_ \u2019])\d{3}(?:\1\d{3})*$/;
  const digits = s => {         // the rule of base/typed.py: which sign is the decimal one, which stand between thousands; null for no number
    if (/^\d*\.?\d+$/.test(s)) return s;
    const signs = s.match(/[,.]/g) || [], last = signs[signs.length - 1];
    let whole = s, part = "", split = -1;
    if (new Set(signs).size === 2 && signs.filter(c => c === last).length === 1) split = s.lastIndexOf(last);
    else if (signs.length === 1 && (last === "." || !GROUPS.test(s))) split = s.indexOf(last);
    if (split >= 0) [whole, part] = [s.slice(0, split), s.slice(split + 1)];
    if (!(/^\d+$/.test(whole) || GROUPS.test(whole)) || split >= 0 && !/^\d+$/.test(part)) return null;
    return whole.replace(/\D/g, "") + (part ? "." + part : "");
  };
  const plain = s => s.replace(/(?<=\d) (?=\d{3}(?!\d))/g, "").replace(/\d(?:[\d.,_'\u2019]*\d)?/g, m => digits(m) ?? m).replace(/[x×·]/g, "*").replace(/÷/g, "/").replace(/−/g, "-").replace(/_/g, "").replace(/\^/g, "**").trim();
  const LEADS = [/^(?:[\d.,_'\u2019\s()eE+\-*/×·÷^−]|(?<=\d)\s*x\s*(?=\d))+/, /^[\d.,_\s()+\-*/×·÷^−]+/];
  const read = (text, units) => {
    const typed = text.replace(/[\u00a0\u2009\u202f]/g, " ").trim().replace(/^[~≈$ ]+/, "");
    for (const lead of LEADS) {
      const m = lead.exec(typed), value = m ? sum(plain(m[0])) : NaN;
      if (Number.isNaN(value)) continue;
      const rest = typed.slice(m[0].length).replace(/ /g, "").replace(/\.+$/, "");
      return [value * (rest ? units[rest] ?? units[rest.toLowerCase()] ?? NaN : 1), rest];
    }
    return [NaN, ""];
  };
  const plainly = s => s.slice(0, 20).replace(/[<&]/g, "");
  const number = (key, text) => {
    const [given, behind] = read(text, key.units);
    if (Number.isNaN(given)) {
      const is = key.dimensions.find(([form]) => new RegExp(`^(?:${form})$`).test(behind.toLowerCase()))?.[1], wanted = `the answer is wanted in ${key.unit || "plain numbers"}`;
      return ["unreadable", behind && is && is !== key.asked ? `${plainly(behind)} is ${is}, ${wanted}.` : behind ? `The${wanted.slice(3)}, not in '${plainly(behind)}'.` : `Not a number in ${key.unit || "plain digits"}.`];
    }
    if (apart(given, key.right) <= key.within * (1 + 1e-9)) return ["right", `${key.shown}.`];
    const near = key.slips.map(s => [apart(given, s.value), s]).filter(([a, s]) => a <= s.within).sort((x, y) => x[0] - y[0]);
    if (near.length) return ["slip", near[0][1].says];
    const other = key.confusions.find(([factor, within]) => apart(given * factor, key.right) <= within);
    if (other) return ["slip", other[2]];
    if (given * key.right <= 0) return ["wrong", given ? "The answer has the other sign." : "The answer is not zero."];
    const off = apart(given, key.right), way = Math.abs(given) > Math.abs(key.right) ? "high" : "low";
    if (off <= key.near) return ["near", `Close, but too ${way}: look for a part left out or rounded away.`];
    if (off > 1e5) return ["wrong", `Too ${way} by ${Math.round(Math.log10(off))} powers of ten.`];
    const usual = key.factors.find(([factor]) => apart(off, factor) < 1.02)?.[way === "low" ? 2 : 1];
    return ["wrong", `Too ${way} by a factor of ${off.toPrecision(2)}${usual ? ": " + usual : ""}.`];
  };
  const choice = (key, picked) => {
    if (!picked.length) return ["open", "Pick an answer first."];
    if (!key.several) return [picked[0] === key.right ? "right" : "slip", key.says[picked[0]]];
    const wrong = picked.filter(k => !key.right.includes(k)), missing = key.right.filter(k => !picked.includes(k)).length;
    if (!wrong.length && !missing) return ["right", "All of them, and no other."];
    const share = Math.max(0, (picked.length - 2 * wrong.length) / key.right.length);
    const few = 2 * (picked.length - wrong.length) < key.right.length;    // one of five is no near miss
    return [wrong.length ? "slip" : few ? "wrong" : "near", wrong.map(k => `<b>${k}</b> does not belong: ${key.says[k]}`).join("<br>") + (missing ? `<p>${missing} more to find.</p>` : ""), Math.min(share, 0.75)];
  };
  const explain = (key, text) => {
    const hits = key.points.map(p => p.words.some(w => new RegExp(w, "i").test(text)));
    const list = key.points.map((p, i) => `<li><b>${hits[i] ? "\u2713" : "\u25cb"}</b> ${p.says}</li>`).join("");
    const all = hits.filter(Boolean).length;
    return [all === hits.length ? "right" : 2 * all >= hits.length ? "near" : "wrong", `Compare it yourself; words that point to ${all} of ${hits.length}.<ul class="scl-options">${list}</ul>`, all / hits.length];
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
    return slower <= key.slower ? ["right", `It fits and holds: ${shown}.`] : [slower <= key.near ? "near" : "wrong", `It fits, but is too slow: ${shown}. The notebook says where it goes.`];
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
      const got = parts.reduce((sum, l) => sum + mean(l), 0), level = card_of.levels.filter(l => got / parts.length >= l.at_least - 1e-9).at(-1);
      points += got; most += parts.length;
      const shows = parts.flat().some(k => log[k.id].tries.length) ? axis[level.name] : "not answered";
      rows.push(`<tr><td class="t">${axis.name}</td><td>${got.toFixed(1)} of ${parts.length}</td><td class="t">${shows}</td></tr>`);
    }
    const level = card_of.levels.filter(l => points / most >= l.at_least - 1e-9).at(-1);
    const weak = keys.filter(k => earned(k) < 1).sort((a, b) => earned(a) - earned(b)).slice(0, 3);
    const why = k => !log[k.id].tries.length ? "not answered" : !solved.has(k.id) ? "not right yet" : `right, after ${log[k.id].tries.length} tries and ${log[k.id].spent} hints`;
    const redo = weak.map(k => `<li><code>${k.id}</code>: ${why(k)}. ${card_of.axes.find(a => a.key === k.axis).redo}</li>`).join("");
    rubric.innerHTML = `<p><strong>${points.toFixed(1)} of ${most} points: ${level.name}</strong>, ${level.says}.</p><table class="scl-table"><tr><th class="t">axis</th><th>points</th>`
      + `<th class="t">what it shows</th></tr>${rows.join("")}</table>` + (redo ? `<p><strong>Do again</strong></p><ul>${redo}</ul>` : "<p><strong>Nothing to do again.</strong></p>");
    const button = document.createElement("button");
    button.className = "scl-print"; button.textContent = "Print the score card";
    button.addEventListener("click", printed);
    rubric.append(button);
  };
  const printed = () => {       // the score card on a sheet of its own, with the whole rubric: what was reached stands bold
    const sheet = document.createElement("div"), names = card_of.levels.map(l => l.name), last = rubric.querySelector(".scl-print");
    const reached = Object.fromEntries([...rubric.querySelectorAll("tr")].slice(1).map(row => [row.cells[0].textContent, row.cells[2].textContent]));
    sheet.className = "scl-sheet scl";
    sheet.innerHTML = `<h1>${document.querySelector("h1")?.innerHTML ?? ""}</h1><p>${new Date().toISOString().slice(0, 10)}, ${tally.textContent}</p>${rubric.innerHTML}<h2>Rubric</h2><table class="scl-table"><tr><th class="t">axis</th>`
      + names.map(n => `<th class="t">${n}</th>`).join("") + "</tr>" + card_of.axes.map(a => `<tr><td class="t">${a.name}</td>` + names.map(n => `<td class="t">${reached[a.name] === a[n] ? `<b>${a[n]}</b>` : a[n]}</td>`).join("") + "</tr>").join("") + "</table>";
    sheet.querySelector(".scl-print")?.remove();
    document.body.append(sheet); document.body.classList.add("scl-printing");
    window.print();
    sheet.remove(); document.body.classList.remove("scl-printing"); last.focus();
  };
  const count = () => { tally.textContent = `${solved.size} of ${keys.length} right`; score(); };
  for (const card of cards) {
    const key = opened(card), mine = log[key.id] = { tries: [], hints: 0 };
    keys.push(key);
    const judged = given => {
      if (key.kind === "choice") return choice(key, given);
      return given.trim() ? { explain, number, plan }[key.kind](key, given) : ["open", `Type an answer first: ${key.wanted}.`];
    };
    controls(card, key, (given, say) => {
      const [status, says, share] = judged(given), credit = share ?? { right: 1, near: 0.5 }[status] ?? 0;
      if (!["open", "unreadable"].includes(status) && mine.tries.at(-1)?.says !== says) mine.tries.push({ says, credit });
      say(status === "open" ? `<div class="scl-verdict" role="status"><p>${says}</p></div>` : `<div class="scl-verdict ${status}" role="status"><p><b class="mark">${NAME[status]}</b></p>${says}</div>`);
      if (status === "right") { solved.add(key.id); mine.spent ??= mine.hints; }
      count();
    }, hints => { mine.hints = Math.max(mine.hints, hints); });
  }
  if (keys.length) { count(); document.body.append(tally); }
})();
