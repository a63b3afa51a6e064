"""S3's XML: written by hand; parsed without document types, entities and attributes."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape

from edgecache.brain.s3.errors import S3Error

NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
CONTENT_TYPE: Final = "application/xml"
DEPTH_LIMIT: Final = 8
ELEMENT_LIMIT: Final = 150_000

# Not allowed in XML 1.0: written as AWS does; clients avoid it with encoding-type=url.
_INVALID: Final = re.compile("[\x01-\x08\x0b-\x1f\ufffe\uffff]")
_QUOTE: Final = {'"': "&quot;"}

# A name with text, or with elements, or None to leave out. Attributes may follow the name of one
# with elements.
Node = tuple[str, "str | int | bool | Sequence[Node | None]"]


def document(name: str, children: Iterable[Node | None], *, namespace: str = NAMESPACE) -> bytes:
    """Return a document with this root."""
    body = "".join(_write(child) for child in children if child is not None)
    attribute = f' xmlns="{namespace}"' if namespace else ""
    return f"{DECLARATION}<{name}{attribute}>{body}</{name}>".encode()


def text_of(value: str) -> str:
    """Escape text."""
    return _INVALID.sub(lambda found: f"&#x{ord(found[0]):x};", escape(value, _QUOTE))


def _write(node: Node) -> str:
    name, value = node
    if isinstance(value, bool):
        return f"<{name}>{'true' if value else 'false'}</{name}>"
    if isinstance(value, str | int):
        return f"<{name}>{text_of(str(value))}</{name}>"
    inner = "".join(_write(child) for child in value if child is not None)
    return f"<{name}>{inner}</{name.partition(' ')[0]}>"


class Element:
    """A parsed element: its local name, its own text, its children."""

    __slots__ = ("children", "name", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = ""
        self.children: list[Element] = []

    def all(self, name: str) -> list["Element"]:
        """Return the children of this name."""
        return [child for child in self.children if child.name == name]

    def value(self, name: str, default: str = "") -> str:
        """Return the text of the first child of this name."""
        for child in self.children:
            if child.name == name:
                return child.text.strip()
        return default


class _Reader:
    """Builds elements; refuses everything that no request needs."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0
        parser = expat.ParserCreate("UTF-8", namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        # No document type, and so no entities and no external subsets.
        parser.StartDoctypeDeclHandler = _refuse
        parser.EntityDeclHandler = _refuse
        parser.ExternalEntityRefHandler = _refuse
        self.parser = parser

    def _start(self, name: str, _attributes: object) -> None:
        self._count += 1
        if self._count > ELEMENT_LIMIT or len(self._open) >= DEPTH_LIMIT:
            raise S3Error("MalformedXML")
        element = Element(name.rpartition(" ")[2])
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _name: str) -> None:
        self._open.pop()

    def _text(self, data: str) -> None:
        self._open[-1].text += data


def parse(body: bytes, root: str) -> Element:
    """Parse a document whose root has this name.

    Raises S3Error MalformedXML: not well-formed, a document type, too deep, too many elements.
    """
    reader = _Reader()
    try:
        reader.parser.Parse(body, True)
    except (expat.ExpatError, UnicodeError, ValueError) as exc:
        raise S3Error("MalformedXML") from exc
    if reader.root is None or reader.root.name != root:
        raise S3Error("MalformedXML")
    return reader.root


def _refuse(*_declaration: object) -> int:
    raise S3Error("MalformedXML")
