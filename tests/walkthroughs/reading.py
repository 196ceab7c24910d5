"""What a reader of a walkthrough sees of its questions."""

from __future__ import annotations

import ast
import inspect
import sys


def texts(q) -> list[str]:
    """Every text of a question: its own, and those of its options, slips and points."""
    inside = [
        each for name in ("options", "slips", "points") for each in getattr(q, name, ()) or ()
    ]
    own = [q.ask, *q.hints, q.worked, q.takeaway, getattr(q, "model", "")]
    said = [getattr(each, name, "") for each in inside for name in ("text", "says")]
    return [text for text in own + said if isinstance(text, str)]  # a plan's slip says it of a plan


TEXTS = {"ask", "hints", "worked", "takeaway", "model", "text", "says"}


def _literal(node: ast.expr) -> str:
    """What of a text was typed, not computed."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(p.value for p in parts if isinstance(p, ast.Constant))


def _functions(w) -> list[ast.FunctionDef]:
    """The functions of a walkthrough's book."""
    tree = ast.parse(inspect.getsource(sys.modules[w.book.__module__]))
    return [n for n in tree.body if isinstance(n, ast.FunctionDef)]


def _asks(w) -> list[ast.FunctionDef]:
    """The functions of a walkthrough's book that write its questions."""
    names = {ask.__name__ for ask in w.asks}
    return [n for n in _functions(w) if n.name in names]


def notes(w) -> list[ast.FunctionDef]:
    """The functions of a walkthrough's book that write what stands behind the fold of a
    question."""
    return [n for n in _functions(w) if n.name.endswith("_note")]


def typed_texts(w) -> list[tuple[str, str]]:
    """(function, text without what is computed) of every text of a walkthrough's questions and
    notes."""
    out = []
    for ask in _asks(w):
        nodes = [n.value for n in ast.walk(ask) if isinstance(n, ast.keyword) and n.arg in TEXTS]
        inner = [n for n in ast.walk(ask) if isinstance(n, ast.FunctionDef) and n is not ask]
        nodes += [n.value for f in inner for n in ast.walk(f) if isinstance(n, ast.Return)]
        flat = [e for n in nodes for e in (n.elts if isinstance(n, ast.Tuple) else [n])]
        out += [(ask.name, _literal(n)) for n in flat]
    for note in notes(w):
        out += [(note.name, _literal(n.value)) for n in ast.walk(note) if isinstance(n, ast.Return)]
    return out


def shown_facts(w) -> list[tuple[str, str]]:
    """(expression, manner) of every number that a question or a note shows in a manner:
    `show.seconds(x)`."""
    out = []
    for function_tree in [*_asks(w), *notes(w)]:
        for call in (
            n for n in ast.walk(function_tree) if isinstance(n, ast.Call) and len(n.args) == 1
        ):
            function = ast.unparse(call.func)
            if function.startswith("show.") or function == "small_size":
                manner = function.removeprefix("show.")
                kind = {"size": "bytes", "small_size": "bytes"}
                out.append((ast.unparse(call.args[0]), kind.get(manner, manner)))
    return out
