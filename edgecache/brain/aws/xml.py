"""S3's XML: written by hand; parsed without document types, entities and attributes."""

import re
import sys
from collections.abc import Iterable, Sequence
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.loop_steps import in_steps

NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
CONTENT_TYPE: Final = "application/xml"
DEPTH_LIMIT: Final = 8
# An origin's page of a thousand objects has 11,000.
ELEMENT_LIMIT: Final = 20_000
# Minimum bytes of an element in a document; the tree has a hundred bytes for each.
BYTES_PER_ELEMENT: Final = 8
# Parsed in one step: it takes a millisecond if it has only elements without texts.
PIECE_BYTES: Final = 2**12
# A tag with its attributes, or a comment: expat reads it again with every piece of it.
TOKEN_LIMIT_BYTES: Final = 2**15

# Not allowed in XML 1.0: written as AWS does; clients avoid it with encoding-type=url.
_INVALID: Final = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_QUOTE: Final = {'"': "&quot;"}
# Most texts contain none of these, and a page of a listing has 5,000 texts.
_ESCAPED: Final = re.compile('[&<>"\x00-\x08\x0b-\x1f\ufffe\uffff]')

# A name with text, or with elements, or None to leave out. Attributes may follow the name of one
# with elements.
Node = tuple[str, "str | int | bool | Sequence[Node | None]"]


def document(name: str, children: Iterable[Node | None], *, namespace: str = NAMESPACE) -> bytes:
    return _document(name, [_write(child) for child in children if child is not None], namespace)


async def long_document(name: str, first: Iterable[Node | None], rows: Iterable[Node]) -> bytes:
    """Return a document with this root, and about a thousand rows. first: what precedes them."""
    texts = [_write(child) for child in first if child is not None]
    texts += await in_steps(_write, rows)
    return _document(name, texts, NAMESPACE)


def error_document(error: S3Error, resource: str, request_id: str) -> bytes:
    """Return the document of an error. resource: the path that was asked for."""
    nodes: list[Node] = [
        ("Code", error.code),
        ("Message", error.message),
        *error.extra.items(),
        ("Resource", resource),
        ("RequestId", request_id),
        ("HostId", request_id),
    ]
    return document("Error", nodes, namespace="")


def _document(name: str, children: Iterable[str], namespace: str) -> bytes:
    body = "".join(children)
    attribute = f' xmlns="{namespace}"' if namespace else ""
    return f"{DECLARATION}<{name}{attribute}>{body}</{name}>".encode()


def text_of(value: str) -> str:
    """Escape text."""
    if _ESCAPED.search(value) is None:
        return value
    return _INVALID.sub(lambda found: f"&#x{ord(found[0]):x};", escape(value, _QUOTE))


def _write(node: Node) -> str:
    name, value = node
    if isinstance(value, str):
        return f"<{name}>{text_of(value)}</{name}>"
    if isinstance(value, bool):
        return f"<{name}>{'true' if value else 'false'}</{name}>"
    if isinstance(value, int):
        return f"<{name}>{value}</{name}>"
    inner = "".join(_write(child) for child in value if child is not None)
    return f"<{name}>{inner}</{name.partition(' ')[0]}>"


class Element:
    """A parsed element: its local name, its own text, its children."""

    __slots__ = ("children", "name", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = ""
        self.children: Sequence[Element] = ()

    def add(self, child: "Element") -> None:
        """Add a child; most elements have none, and no list."""
        if isinstance(self.children, list):
            self.children.append(child)
        else:
            self.children = [child]

    def all(self, name: str) -> list["Element"]:
        return [child for child in self.children if child.name == name]

    def check(self, *names: str, are_texts: bool = False) -> None:
        """Refuse a child of another name. are_texts: and one with elements, or given twice.

        Raises S3Error MalformedXML, which names it.
        """
        seen: set[str] = set()
        for child in self.children:
            is_wrong = are_texts and (child.children or child.name in seen)
            if is_wrong or child.name not in names:
                raise S3Error(
                    "MalformedXML",
                    f"{self.name} has the element {child.name[:100]}, which is not known there, or "
                    "not in this form.",
                )
            seen.add(child.name)

    def value(self, name: str, default: str = "") -> str:
        """Return the text of the first child of this name."""
        for child in self.children:
            if child.name == name:
                return child.text.strip()
        return default


class _Reader:
    """Builds elements; refuses everything that no request needs."""

    def __init__(self, limit: int) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        # The texts of the open elements, in pieces.
        self._texts: list[list[str]] = []
        self._left = limit
        self._fed_bytes = 0
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

    def feed(self, piece: memoryview) -> None:
        """Parse the next piece. Raises S3Error, and what expat raises."""
        self._fed_bytes += len(piece)
        self.parser.Parse(piece, False)
        if self._fed_bytes - self.parser.CurrentByteIndex > TOKEN_LIMIT_BYTES:
            raise S3Error("MalformedXML")

    def _start(self, name: str, _attributes: object) -> None:
        self._left -= 1
        if self._left < 0 or len(self._open) >= DEPTH_LIMIT:
            raise S3Error("MalformedXML")
        element = Element(sys.intern(name.rpartition(" ")[2]))
        if self._open:
            self._open[-1].add(element)
        else:
            self.root = element
        self._open.append(element)
        self._texts.append([])

    def _end(self, _name: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())

    def _text(self, data: str) -> None:
        self._texts[-1].append(data)


async def parse(body: bytes, root: str, *, limit: int = ELEMENT_LIMIT) -> Element:
    """Parse a document whose root has this name. limit: its maximum number of elements.

    Raises S3Error MalformedXML: not well-formed, a document type, too deep, too many elements.
    """
    whole = memoryview(body)
    reader = _Reader(min(limit, len(whole) // BYTES_PER_ELEMENT + 1))
    try:
        pieces = (whole[start : start + PIECE_BYTES] for start in range(0, len(whole), PIECE_BYTES))
        await in_steps(reader.feed, pieces, step=1)
        reader.parser.Parse(b"", True)
    except (expat.ExpatError, UnicodeError, ValueError) as exc:
        raise S3Error("MalformedXML") from exc
    if reader.root is None or reader.root.name != root:
        raise S3Error("MalformedXML")
    return reader.root


def _refuse(*_declaration: object) -> int:
    raise S3Error("MalformedXML")
