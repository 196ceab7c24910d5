// What can stand on the page, by kind: each is given a model {get, set, save_changes, on, off} and the element to draw in.
const kinds = {};

// The sheet that a number opens to: formula, the values in it, source, convention, band. It lies above everything, is not
// modal, so a slider can be moved while it is open, and closes with Escape, its button, or the number again.

const sheetPart = (tag, cls, parent) => { const n = document.createElement(tag); if (cls) n.className = cls; parent.append(n); return n; };
const MONO = new Set(["Formula", "With these values"]);

function sheetOf(el, closed) {
  const sheet = sheetPart("div", "sd-sheet", el);
  sheet.popover = "manual"; sheet.tabIndex = -1; sheet.setAttribute("role", "dialog");
  let anchor = null;
  const open = () => sheet.matches(":popover-open");

  function place() {
    if (!anchor?.isConnected || !open()) return;
    const at = anchor.getBoundingClientRect(), own = sheet.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, innerWidth - own.width - 8));
    const below = at.bottom + 4 + own.height <= innerHeight - 8 || at.top < innerHeight / 2;
    sheet.style.left = left + "px";
    sheet.style.top = Math.max(8, below ? at.bottom + 4 : at.top - 4 - own.height) + "px";
    sheet.style.maxHeight = Math.max(160, below ? innerHeight - at.bottom - 12 : at.top - 12) + "px";
  }

  function hide() {
    if (open()) sheet.hidePopover();
    anchor?.setAttribute("aria-expanded", "false");
  }

  function show(detail, from) {
    const fresh = !open() || from !== anchor;
    if (from !== anchor) anchor?.setAttribute("aria-expanded", "false");
    anchor = from;
    sheet.replaceChildren();
    sheet.setAttribute("aria-label", detail.title);
    const head = sheetPart("div", "sd-sheet-head", sheet);
    sheetPart("b", "", head).textContent = detail.title;
    sheetPart("span", "", head).textContent = detail.value ?? "";
    const shut = sheetPart("button", "sd-sheet-close", head);
    shut.type = "button"; shut.textContent = "×"; shut.setAttribute("aria-label", "Close");
    shut.addEventListener("click", () => leave());
    const list = sheetPart("dl", "", sheet);
    for (const [term, text] of detail.lines ?? []) {
      sheetPart("dt", "", list).textContent = term;
      sheetPart("dd", MONO.has(term) ? "sd-mono" : "", list).textContent = text;
    }
    if (!open()) sheet.showPopover();
    anchor?.setAttribute("aria-expanded", "true");
    sheet.style.maxHeight = "420px";
    place();
    if (fresh) sheet.focus({ preventScroll: true });
  }

  function leave() { const from = anchor; hide(); closed?.(); from?.focus(); }
  const key = event => { if (event.key === "Escape" && open()) { event.stopPropagation(); leave(); } };
  el.addEventListener("keydown", key);
  return { show, hide, leave, open, anchor: () => anchor };
}

