// The controls of a question's card, on a rendered page and before a kernel: a field or boxes, a button, and below them what is said to an answer.
// `asked(given, say)` hears an answer, a text or the keys that are picked; `took(n)` how many hints were opened, all of them with the worked answer.
const controls = (card, key, asked, took) => {
  const make = tag => document.createElement(tag), row = make("form"), out = make("div"), button = make("button");
  const first = card.querySelector("details"), answer = card.querySelector(".scl-answer");
  row.className = "scl-try"; button.textContent = key.act ?? "Check";
  let given;
  if (key.kind === "choice") {
    const boxes = [...card.querySelector(".scl-options").children].map(li => {
      const box = make("input"), label = make("label");
      box.type = key.several ? "checkbox" : "radio"; box.name = key.id; box.value = li.querySelector("b").textContent;
      label.append(box, ...li.childNodes); li.append(label);
      return box;
    });
    given = () => boxes.filter(b => b.checked).map(b => b.value);
  } else {
    const field = make(key.kind === "explain" ? "textarea" : "input");
    if (key.kind !== "explain") field.type = "text";
    field.placeholder = key.wanted; field.setAttribute("aria-label", `Answer to ${key.id}: ${key.wanted}`);
    row.append(field);
    given = () => field.value;
  }
  row.append(button);
  const say = html => {
    out.innerHTML = html;
    if (out.querySelector(".scl-verdict:not(.unreadable) .mark")) answer?.removeAttribute("hidden");
  };
  row.addEventListener("submit", event => { event.preventDefault(); asked(given(), say); });
  card.addEventListener("toggle", ({ target }) => {
    if (!target.open) return;
    took(target === answer ? key.hints : Number(target.querySelector("summary").textContent.match(/\d+/)[0]));
    answer?.removeAttribute("hidden");
  }, true);
  answer?.setAttribute("hidden", "");                                    // a try or a hint comes before the answer
  card.insertBefore(row, first); card.insertBefore(out, first);
  return { given, out, say };
};
