"""What a section of the report is made of: headings, lists, tables and paragraphs. `section.j2`
prints them; what they say is worked out before."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from markupsafe import Markup
from scantling.base.displayed import Html
from scantling.base.records import record

from .rendering import environment


def part_of_report(html: str) -> Html:
    """A part of a report as a notebook shows it; a program sees what it is."""
    return Html(html=html, words="<part of a design report>")


def line(*parts: str) -> Markup:
    """A sentence out of its parts; those that are no markup are escaped."""
    return Markup("").join(parts)


def strong(*parts: str) -> Markup:
    """The parts in bold."""
    return Markup("<strong>{}</strong>").format(line(*parts))


def joined(items: Iterable[str], by: str = ", ") -> Markup:
    """Texts or markup one after the other."""
    return Markup(by).join(items)


@record
class Heading:
    """A heading: 2 of the section, 3 of a part of it."""

    kind: ClassVar[str] = "heading"
    text: str
    level: int = 2
    css: str = ""


@record
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    items: Sequence[str]
    css: str = ""


@record
class Paragraph:
    """Text on its own."""

    kind: ClassVar[str] = "paragraph"
    text: str
    css: str = ""


@record
class Column:
    """A column of a table: numbers stand at the right; `css` is a class of its cells."""

    title: str
    number: bool = False
    css: str = ""


@record
class Row:
    """A row of a table, a text a column."""

    cells: Sequence[str]
    css: str = ""

    def by_column(self, columns: Sequence[Column]) -> list[tuple[Column, str]]:
        """Each cell with its column."""
        return list(zip(columns, self.cells, strict=True))


@record
class Table:
    """A table. `css`: a class of it; `named`: the first cell of a row is its head; `scoped`: heads
    of columns say so, for who hears the table."""

    kind: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Row]
    css: str = "dense"
    named: bool = False
    scoped: bool = False


@record
class Tile:
    """A headline figure: label, value, and the band or a remark below it."""

    label: str
    value: str
    band: str


@record
class Tiles:
    """The headline figures."""

    kind: ClassVar[str] = "tiles"
    tiles: Sequence[Tile]


@record
class Signature:
    """Where whoever decides signs."""

    kind: ClassVar[str] = "signature"


@record
class Raw:
    """Markup of its own, such as a picture."""

    kind: ClassVar[str] = "raw"
    html: Markup


Block = Heading | Bullets | Paragraph | Table | Tiles | Signature | Raw


@record
class Section:
    """A part of the report under its id; a header where it has none."""

    id: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """The section as a page holds it."""
        return environment().get_template("section.j2").render(section=self).strip()


def columns(*titles: str) -> tuple[Column, ...]:
    """Columns by their titles; one that ends in # holds numbers."""
    return tuple(
        Column(title=title.removesuffix("#"), number=title.endswith("#")) for title in titles
    )


def rows(items: Iterable[Sequence[str]]) -> tuple[Row, ...]:
    """Rows without a class of their own."""
    return tuple(Row(cells=cells) for cells in items)


def bullets(items: Iterable[str]) -> Markup:
    """A list inside a sentence of a list."""
    found = list(items)
    inner = joined((Markup("<li>{}</li>").format(item) for item in found), "")
    return Markup("<ul>{}</ul>").format(inner) if found else Markup("")
