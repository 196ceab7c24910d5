"""What stands on the page as plain data: parts that a front end draws, and the messages between
both (PROTOCOL.md). Nothing here knows whether a kernel, a server or a worker speaks."""

import threading
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from itertools import count

VERSION = 1  # of the messages
_IDS = count(1)


class Part:
    """One thing on the page: its kind and its state, whose entries read as attributes.

    Setting an entry tells the page, and whoever asked by `on`. `HEARS` are the entries that the
    page may set.
    """

    KIND = "html"
    STATE: Mapping = {"value": ""}
    HEARS: tuple[str, ...] = ()

    def __init__(self, **state):
        own = {"cls": "", "hidden": False, **self.STATE, **state}
        vars(self).update(id=f"p{next(_IDS)}", state=own, page=None, heard={})

    def __getattr__(self, name: str):
        try:
            return vars(self)["state"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value) -> None:
        if name not in self.state:
            super().__setattr__(name, value)
        elif self.state[name] is not value and self.state[name] != value:
            self.state[name] = value
            if self.page is not None:
                self.page.changed(self, name)
            for act in self.heard.get(name, ()):
                act(value)

    def on(self, name: str, act: Callable) -> None:
        """Call `act(value)` whenever the entry `name` has a new value."""
        self.heard.setdefault(name, []).append(act)

    def nudge(self, name: str, **said) -> None:
        """What the page does when the user asks for something: the entry with its next serial."""
        setattr(self, name, {**said, "serial": getattr(self, name).get("serial", 0) + 1})

    def wire(self, names) -> dict:
        """Entries as they travel: parts by their names."""
        found = {name: self.state[name] for name in names}
        if "children" in found:
            found["children"] = [child.id for child in found["children"]]
        return found


class Box(Part):
    """Parts next to or below each other, as the class of the style sheet says."""

    KIND, STATE = ("box", {"children": (), "title": "", "note": None})


class Button(Part):
    """A button that calls `act` without an argument."""

    KIND, HEARS = "button", ("clicks",)
    STATE = {"description": "", "tooltip": "", "disabled": False, "active": False, "clicks": 0}

    def __init__(self, description: str, act: Callable, tooltip: str = "", cls: str = ""):
        super().__init__(description=description, tooltip=tooltip, cls=cls)
        self.on("clicks", lambda _: act())

    def click(self) -> None:
        self.clicks += 1


class Field(Part):
    """A line of text to type; `lines` of them where there are more; where it `takes` a file, the
    text of one that the reader chooses."""

    KIND, HEARS = "field", ("value",)
    STATE = {"value": "", "description": "", "lines": 1, "takes": ""}


class Drop(Part):
    """A list to choose from: values, or (name, value) pairs."""

    KIND, HEARS = "drop", ("index",)
    STATE = {"names": (), "index": 0, "description": ""}

    def __init__(self, description: str, options):
        super().__init__(description=description)
        self.options = options

    @property
    def options(self) -> tuple:
        return self._options

    @options.setter
    def options(self, options) -> None:
        kept = self.value if "_options" in vars(self) else None
        self._options = tuple(options)
        pairs = [o if isinstance(o, tuple) else (o, o) for o in self._options]
        self._values = [value for _, value in pairs]
        self.names = [name for name, _ in pairs]
        self.index = self._values.index(kept) if kept in self._values else 0

    @property
    def value(self):
        return self._values[self.index] if self._values else None

    @value.setter
    def value(self, value) -> None:
        self.index = self._values.index(value)


class Tabs(Part):
    """Boxes of which one is in front."""

    KIND, HEARS = "tabs", ("selected_index",)
    STATE = {"children": (), "titles": (), "selected_index": 0}


class Link(Part):
    """What opens the design on the page: a button copies it, and the front end keeps it behind the
    address where that is its own."""

    KIND, STATE = ("link", {"value": "", "description": "Copy link"})


class Page:
    """The parts below `root`, and whoever shows them: `tell(message)` sends, `hear` receives."""

    def __init__(self, root: Part, hello: Callable[[Mapping], None] = lambda message: None):
        self.root, self.hello, self.tell = root, hello, None
        self.lock = threading.RLock()
        self.parts, self._changed, self._held = {}, {}, 0
        self._adopt(root)

    def _adopt(self, part: Part) -> None:
        if part.page is None:
            part.page, self.parts[part.id] = self, part
            self._changed[part.id] = {*part.state, "kind"}
        for child in part.state.get("children", ()):
            self._adopt(child)

    def changed(self, part: Part, name: str) -> None:
        with self.lock:
            self._changed.setdefault(part.id, set()).add(name)
            if name == "children":
                self._adopt(part)
            if not self._held:
                self.flush()

    @contextmanager
    def held(self):
        """Everything that changes inside travels as one message at the end."""
        with self.lock:
            self._held += 1
        try:
            yield
        finally:
            with self.lock:
                self._held -= 1
                if not self._held:
                    self.flush()

    def flush(self) -> None:
        """Send what has changed so far."""
        with self.lock:
            changed, self._changed = self._changed, {}
            if self.tell is not None and changed:
                self.tell({"parts": {id: self._wire(id, names) for id, names in changed.items()}})

    def _wire(self, id: str, names: set) -> dict:
        part = self.parts[id]
        return ({"kind": part.KIND} if "kind" in names else {}) | part.wire(names - {"kind"})

    def hear(self, message: Mapping) -> None:
        """Take one message of the front end and answer it."""
        try:
            with self.held():
                if "hello" in message:
                    self.hello(message)
                    self._changed = {id: {*part.state, "kind"} for id, part in self.parts.items()}
                    self.tell({"scantling": VERSION, "root": self.root.id})
                for id, entries in message.get("set", {}).items():
                    part = self.parts.get(id)
                    for name, value in entries.items():
                        if part is not None and name in part.HEARS:
                            setattr(part, name, value)
        finally:
            self.tell({"answered": message.get("serial")})
