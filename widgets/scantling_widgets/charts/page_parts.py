"""What stands on the page as plain data: parts that a front end draws, and the messages between
both (PROTOCOL.md). Nothing here knows whether a kernel, a server or a worker speaks."""

import base64
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, ClassVar

VERSION = 1  # of the messages
_IDS = count(1)

Message = Mapping[str, Any]  # as PROTOCOL.md says
Act = Callable[[Any], None]  # hears a new value


class Part:
    """One thing on the page: its kind and its state, whose entries read as attributes.

    Setting an entry tells the page, and whoever asked by `on`. `STATE` are the entries with their
    first values, `HEARS` those that the page may set.
    """

    KIND: ClassVar[str] = "html"
    STATE: ClassVar[Mapping[str, Any]] = {"value": ""}
    HEARS: ClassVar[tuple[str, ...]] = ()

    id: str
    state: dict[str, Any]
    page: "Page | None"
    followers: dict[str, list[Act]]  # of each entry
    # entries
    cls: str
    hidden: bool
    value: Any

    def __init__(self, **state: Any) -> None:
        entries = {"cls": "", "hidden": False, **self.STATE, **state}
        vars(self).update(id=f"p{next(_IDS)}", state=entries, page=None, followers={})

    def __getattr__(self, name: str) -> Any:
        try:
            return vars(self)["state"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.state:
            self.put(name, value)
        else:
            super().__setattr__(name, value)

    def put(self, name: str, value: Any) -> None:
        """Set an entry; nothing happens where it has that value already."""
        if self.state[name] is value or self.state[name] == value:
            return
        self.state[name] = value
        if self.page is not None:
            self.page.changed(self, name)
        for act in self.followers.get(name, ()):
            act(value)

    def on(self, name: str, act: Act) -> None:
        """Call `act(value)` whenever the entry `name` has a new value."""
        self.followers.setdefault(name, []).append(act)

    def nudge(self, name: str, **request: Any) -> None:
        """What the page does when the user asks for something: the entry with its next serial."""
        self.put(name, {**request, "serial": self.state[name].get("serial", 0) + 1})

    def wire(self, names: Iterable[str]) -> dict[str, Any]:
        """Entries as they travel: parts by their names."""
        entries = {name: self.state[name] for name in names}
        if "children" in entries:
            entries["children"] = [child.id for child in entries["children"]]
        return entries


class Box(Part):
    """Parts next to or below each other, as the class of the style sheet says."""

    KIND = "box"
    STATE = {"children": (), "title": "", "note": None}

    children: Sequence[Part]
    title: str
    note: str | None


class Button(Part):
    """A button that calls `act` without an argument."""

    KIND, HEARS = "button", ("clicks",)
    STATE = {"description": "", "tooltip": "", "disabled": False, "active": False, "clicks": 0}

    description: str
    tooltip: str
    disabled: bool
    active: bool
    clicks: int

    def __init__(
        self, description: str, act: Callable[[], Any], tooltip: str = "", cls: str = ""
    ) -> None:
        super().__init__(description=description, tooltip=tooltip, cls=cls)
        self.on("clicks", lambda _: act())

    def click(self) -> None:
        """What the user does."""
        self.clicks += 1


class Field(Part):
    """A line of text to type; `lines` of them where there are more; where it `takes` a file, the
    text of one that the reader chooses."""

    KIND, HEARS = "field", ("value",)
    STATE = {"value": "", "description": "", "lines": 1, "takes": ""}

    value: str
    description: str
    lines: int
    takes: str


class Drop(Part):
    """A list to choose from: values, or (name, value) pairs."""

    KIND, HEARS = "drop", ("index",)
    STATE = {"names": (), "index": 0, "description": ""}

    names: Sequence[str]
    index: int
    description: str
    _options: tuple[Any, ...]
    _values: list[Any]

    def __init__(self, description: str, options: Iterable[Any]) -> None:
        super().__init__(description=description)
        self.options = options

    @property
    def options(self) -> tuple[Any, ...]:
        """What there is to choose from."""
        return self._options

    @options.setter
    def options(self, options: Iterable[Any]) -> None:
        chosen = self.value if "_options" in vars(self) else None
        self._options = tuple(options)
        pairs = [o if isinstance(o, tuple) else (o, o) for o in self._options]
        self._values = [value for _, value in pairs]
        self.names = [name for name, _ in pairs]
        self.index = self._values.index(chosen) if chosen in self._values else 0

    @property
    def value(self) -> Any:
        """What is chosen."""
        return self._values[self.index] if self._values else None

    @value.setter
    def value(self, value: Any) -> None:
        self.index = self._values.index(value)


class Tabs(Part):
    """Boxes of which one is in front; only those at the places `offered` can be."""

    KIND, HEARS = "tabs", ("selected_index",)
    STATE = {"children": (), "titles": (), "selected_index": 0, "offered": ()}

    children: Sequence[Part]
    titles: Sequence[str]
    selected_index: int
    offered: Sequence[int]


class Link(Part):
    """What opens the design on the page: a button copies it, and the front end keeps it behind the
    address where that is its own."""

    KIND = "link"
    STATE = {"value": "", "description": "Copy link"}

    value: str
    description: str


class Download(Part):
    """A file for whoever looks at the page: it is downloaded as it arrives, and stays as a link.

    file    {file_name, content in base64, serial}
    """

    KIND, STATE = "download", {"file": {}}

    file: Mapping[str, Any]

    def give(self, name: str, content: bytes) -> None:
        """Give a file to the reader's machine."""
        self.nudge("file", file_name=name, content=base64.b64encode(content).decode())

    def withdraw(self) -> None:
        """Offer no file: what was given is of an earlier question."""
        self.file = {"serial": self.file.get("serial", 0)}


def _no_answer(message: Message) -> None:
    """Nobody is greeted."""


class Page:
    """The parts below `root`, and whoever shows them: `tell(message)` sends, `hear` receives."""

    def __init__(self, root: Part, hello: Callable[[Message], None] = _no_answer) -> None:
        self.root, self.hello = root, hello
        self.tell: Callable[[Message], Any] | None = None
        self.lock = threading.RLock()
        self.parts: dict[str, Part] = {}
        self._changed: dict[str, set[str]] = {}  # entries by part
        self.seen = False  # whether somebody has looked at it
        self._holders = 0  # of the messages
        self._adopt(root)

    def _adopt(self, part: Part) -> None:
        if part.page is None:
            part.page, self.parts[part.id] = self, part
            self._changed[part.id] = {*part.state, "kind"}
        for child in part.state.get("children", ()):
            self._adopt(child)

    def changed(self, part: Part, name: str) -> None:
        """Send an entry that has a new value, now or with the message that is held."""
        with self.lock:
            self._changed.setdefault(part.id, set()).add(name)
            if name == "children":
                self._adopt(part)
            if not self._holders:
                self.flush()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Everything that changes inside travels as one message at the end."""
        with self.lock:
            self._holders += 1
        try:
            yield
        finally:
            with self.lock:
                self._holders -= 1
                if not self._holders:
                    self.flush()

    def flush(self) -> None:
        """Send what has changed so far."""
        with self.lock:
            changed, self._changed = self._changed, {}
            if self.tell is not None and changed:
                self.tell({"parts": {id: self._wire(id, names) for id, names in changed.items()}})

    def _wire(self, id: str, names: set[str]) -> dict[str, Any]:
        part = self.parts[id]
        kind = {"kind": part.KIND} if "kind" in names else {}
        return kind | part.wire(names - {"kind"})

    def hear(self, message: Message) -> None:
        """Take one message of the front end and answer it."""
        try:
            with self.batch():
                if "hello" in message:
                    self._greet(message)
                for id, entries in message.get("set", {}).items():
                    part = self.parts.get(id)
                    for name, value in entries.items():
                        if part is not None and name in part.HEARS:
                            part.put(name, value)
        finally:
            self._send({"answered": message.get("serial")})

    def _greet(self, message: Message) -> None:
        """A front end that has just come: it is sent all that is on the page."""
        self.seen = True
        self.hello(message)
        self._changed = {id: {*part.state, "kind"} for id, part in self.parts.items()}
        self._send({"scantling": VERSION, "root": self.root.id})

    def _send(self, message: Message) -> None:
        if self.tell is not None:
            self.tell(message)
