"""What README.md and CONTRIBUTING.md show of the code: `python tests/bench/documents.py` writes it
again.

The read-me shows the real output of one command between its markers; CONTRIBUTING.md shows
gallery/pictures/house.svg, the rooms with what each answers and which rooms it imports from.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from test_structure import ABOVE, FILES, ORDER, imports, named

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
MAP = ROOT / "gallery" / "pictures" / "house.svg"
BEGIN, END = "<!-- example: begin -->", "<!-- example: end -->"
LINE = "70B on 512 H100, 2T tokens, 30 days"
WIDTH, ROW, LEFT, MIDDLE = 1060, 34, 150, 700


def example() -> str:
    """The command of the read-me, run as it stands there, with what it prints as Markdown: how the
    line was read, and the first paragraph on the design. Dots stand for the rest."""
    command = f'scantling init --text "{LINE}" -o run.yaml && scantling design run.yaml'
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with TemporaryDirectory() as folder:
        printed = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            capture_output=True,
            text=True,
            env=os.environ | {"COLUMNS": "110", "PATH": path},
        ).stdout
    next_line = "Next     scantling design run.yaml\n"
    reading, _, assessed = printed.partition(next_line)
    first = assessed.strip().split("\n\n")[0]
    lines = [f"$ {command}", *(reading + next_line).splitlines(), *first.splitlines(), "…"]
    return "\n".join(["```console", *map(str.rstrip, lines), "```"])


def with_example(text: str) -> str:
    """The read-me with the example of now between its markers."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{example()}\n{END}{rest.split(END)[1]}"


def room(module: str) -> str:
    """The room of a module: the part below scantling, or the package on top."""
    top, _, rest = module.partition(".")
    return top if top in ABOVE else rest.partition(".")[0] if rest else ""


def rooms() -> list[dict]:
    """Each room in order: what it answers, how many modules it has, which rooms it imports from."""
    found = {name: {"name": name, "modules": 0, "from": set()} for name in (*ORDER, *ABOVE)}
    for path in FILES:
        module, is_package = named(path)
        name, text = room(module), path.read_text(encoding="utf-8")
        if name not in found:
            continue
        here = found[name]
        here["modules"] += path.name != "__init__.py"
        if is_package and module.rpartition(".")[2] == name:
            here["answers"] = first_sentence(ast.get_docstring(ast.parse(text)))
        of = {room(target) for target, _ in imports(text, module, is_package)}
        here["from"] |= of & found.keys() - {name}
    return list(found.values())


def first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def picture() -> str:
    """The map of the house as SVG: a room a line, the next one below stands on those above."""
    every = rooms()
    height = ROW * (len(every) + 1) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="13" role="img">',
        "<title>The rooms of the house, in the order of their imports</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *(
            f'<text x="{x}" y="22" fill="#555555">{said}</text>'
            for x, said in ((10, "room"), (LEFT, "answers"), (MIDDLE, "imports from"))
        ),
    ]
    for i, one in enumerate(every, 1):
        y = ROW * i
        of = [name for name in (*ORDER, *ABOVE) if name in one["from"]]
        answers, named = escape(cut(one["answers"], 88)), escape(cut(" ".join(short(of)), 66))
        shade = "#e8eef7" if one["name"] in ORDER else "#f4ecdf"
        lines += [
            f'<rect x="4" y="{y}" width="{WIDTH - 8}" height="{ROW - 4}" rx="4" fill="{shade}"/>',
            f'<text x="10" y="{y + 19}" font-weight="bold">{short([one["name"]])[0]}</text>',
            f'<text x="{LEFT}" y="{y + 19}" font-size="12">{answers}</text>',
            f'<text x="{MIDDLE}" y="{y + 19}" font-size="11">{named}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def short(of: list[str]) -> list[str]:
    """Names of rooms, a run of neighbours as `first–last`."""
    order, out, i = [*ORDER, *ABOVE], [], 0
    while i < len(of):
        j = i
        while j + 1 < len(of) and order.index(of[j + 1]) == order.index(of[j]) + 1:
            j += 1
        names = [of[i].replace("scantling_", ""), of[j].replace("scantling_", "")]
        out += ["–".join(names)] if j > i + 1 else [n for n in dict.fromkeys(names)]
        i = j + 1
    return out


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + " …"


if __name__ == "__main__":
    README.write_text(with_example(README.read_text(encoding="utf-8")), encoding="utf-8")
    MAP.write_text(picture(), encoding="utf-8")
