"""Reading a rendered page: its words, its elements, and whether it is sound HTML. For tests."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
INSIDE = {
    "li": {"ul", "ol"},
    "tr": {"thead", "tbody", "tfoot", "table"},
    "td": {"tr"},
    "th": {"tr"},
    "dt": {"dl", "div"},
    "dd": {"dl", "div"},
    "figcaption": {"figure"},
    "thead": {"table"},
    "tbody": {"table"},
}
BLOCKS = {
    "p",
    "ul",
    "ol",
    "table",
    "h1",
    "h2",
    "h3",
    "section",
    "dl",
    "pre",
    "figure",
    "div",
    "header",
    "footer",
    "main",
}


class Page(HTMLParser):
    """The elements and the words of a page; `faults` lists what a validator would object to."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.elements: Counter = Counter()
        self.attributes: list[tuple[str, dict]] = []
        self.faults: list[str] = []
        self.bold: list[str] = []
        self._open: list[str] = []
        self._text: list[str] = []
        self.html = html
        if not html.lower().lstrip().startswith("<!doctype html>"):
            self.faults.append("no doctype")
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self._open]
        ids = Counter(a["id"] for _, a in self.attributes if "id" in a)
        self.faults += [f"id {i} stands {n} times" for i, n in ids.items() if n > 1]
        self.faults += [
            f"<img> without alt: {a}"
            for tag, a in self.attributes
            if tag == "img" and "alt" not in a
        ]
        if self.elements["title"] < 1 or self.elements["h1"] != 1 or self.elements["main"] != 1:
            self.faults.append("one title, one h1 and one main are expected")

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        names = [name for name, _ in attrs]
        self.faults += [f"<{tag}> has {n} twice" for n, c in Counter(names).items() if c > 1]
        self.attributes.append((tag, {k: v or "" for k, v in attrs}))
        parent = self._open[-1] if self._open else ""
        if tag in INSIDE and parent not in INSIDE[tag]:
            self.faults.append(f"<{tag}> inside <{parent}>")
        if tag in BLOCKS and parent in {"p", "h1", "h2", "h3", "strong", "span"}:
            self.faults.append(f"<{tag}> inside <{parent}>")
        if tag not in VOID:
            self._open.append(tag)
        if tag in BLOCKS | {"li", "br", "td", "th", "dt", "dd"}:
            self._text.append("\n")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes <{self._open[-1] if self._open else 'nothing'}>")
            if tag not in self._open:
                return
            while self._open[-1] != tag:
                self._open.pop()
        self._open.pop()
        if tag in BLOCKS | {"li", "td", "th", "dt", "dd"}:
            self._text.append("\n")

    def handle_data(self, data):
        if "style" not in self._open and "svg" not in self._open and "title" not in self._open:
            self._text.append(data)
            if "strong" in self._open:
                self.bold.append(data)

    @property
    def text(self) -> str:
        """What a reader sees, pictures left out; one line a block."""
        lines = (re.sub(r"[ \t\n]+", " ", line).strip() for line in "".join(self._text).split("\n"))
        return "\n".join(filter(None, lines))

    def outside(self) -> list[str]:
        """Addresses that a browser would fetch without being asked to."""
        found = [
            v
            for tag, a in self.attributes
            for k, v in a.items()
            if (
                k in ("src", "srcset", "data", "poster", "action")
                or (k in ("href", "xlink:href") and tag != "a")
            )
            and not v.startswith(("data:", "#"))
        ]
        return (
            found
            + [
                u
                for u in re.findall(r"url\(\s*['\"]?([^)'\"]*)", self.html)
                if not u.startswith(("#", "data:"))
            ]
            + re.findall(r"@import[^;]*", self.html)
        )
