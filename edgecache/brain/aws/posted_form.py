"""A form as browsers post it (multipart/form-data): its fields, then its file as a stream.

Strict where two readers could understand two things: nothing precedes the first part or follows the
last one, lines end in CR LF, and each name occurs once. Source: RFC 7578; AWS, "POST Object".
"""

import re
import sys
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from edgecache.brain.aws.errors import S3Error

# AWS's limit of what precedes the file; the same for what follows it.
LIMIT_BYTES: Final = 20 * 2**10
FILE: Final = "file"
FILENAME: Final = "${filename}"
TYPE: Final = "multipart/form-data"
_LINE: Final = b"\r\n"
_END: Final = b"--"
_BOUNDARY: Final = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_HEADER: Final = re.compile(rb"([A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_PARAMETER: Final = re.compile(
    rb'[ \t]*;[ \t]*([A-Za-z]+\*?)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))[ \t]*'
)
# A part is read as it is, and what it says of itself is not signed.
_WITHOUT_EFFECT: Final = frozenset((b"content-type", b"content-length"))
_ENCODINGS: Final = frozenset((b"7bit", b"8bit", b"binary"))


class _Part(NamedTuple):
    """name: in lower case. filename: without its path; empty for a field."""

    name: str
    filename: str


class PostedForm:
    """A form that is being read. fields: before the file, by names in lower case.

    Iterating yields the file's bytes, and ends after the form has: what is cut or malformed raises.
    smallest, largest: bounds of the file's size.
    """

    def __init__(self, body: AsyncIterator[bytes], content_type: str) -> None:
        """Raises S3Error MalformedPOSTRequest."""
        found = _parameters(content_type.encode("latin-1"), TYPE.encode(), b"boundary", b"charset")
        boundary = found.get(b"boundary", b"")
        if not _BOUNDARY.fullmatch(boundary):
            raise _malformed("The boundary is missing, or is none.")
        self.fields: dict[str, str] = {}
        self.filename = ""
        self.smallest, self.largest = 0, sys.maxsize
        self._body = body
        self._delimiter = _LINE + _END + boundary
        # A line's end before the first delimiter: it is like the others then.
        self._unread = bytearray(_LINE)
        self._left = LIMIT_BYTES

    async def read_fields(self) -> None:
        """Read all that precedes the file's bytes, and put the file's name in its places.

        Raises S3Error: MalformedPOSTRequest, InvalidArgument (a field twice, or a file without the
        name that is asked for), MaxPostPreDataLengthExceededError,
        IncorrectNumberOfFilesInPostRequest; what the body raises.
        """
        if await self._until(self._delimiter):
            raise _malformed("It does not begin with its boundary.")
        while (part := await self._part()) is not None:
            if part.name == FILE:
                self.filename = part.filename
                self._expand()
                return
            if part.name in self.fields:
                raise S3Error("InvalidArgument", f"The field {part.name[:100]} occurs twice.")
            self.fields[part.name] = _text(await self._until(self._delimiter))
        raise _wrong_number_of_files()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the file's bytes.

        Raises S3Error: EntityTooLarge, EntityTooSmall, MalformedPOSTRequest,
        IncorrectNumberOfFilesInPostRequest; what the body raises.
        """
        size, kept = 0, len(self._delimiter) - 1
        while True:
            found = self._unread.find(self._delimiter)
            # The end may be the beginning of a delimiter.
            ready = found if found >= 0 else max(0, len(self._unread) - kept)
            size += ready
            if size > self.largest:
                sizes = {"ProposedSize": str(size), "MaxSizeAllowed": str(self.largest)}
                raise S3Error("EntityTooLarge", extra=sizes)
            if ready:
                piece = bytes(memoryview(self._unread)[:ready])
                del self._unread[:ready]
                yield piece
            if found >= 0:
                break
            await self._more()
        if size < self.smallest:
            sizes = {"ProposedSize": str(size), "MinSizeAllowed": str(self.smallest)}
            raise S3Error("EntityTooSmall", extra=sizes)
        del self._unread[: len(self._delimiter)]
        await self._finish()

    async def _finish(self) -> None:
        """Read the fields after the file, which have no effect: a browser sends its button."""
        self._left = LIMIT_BYTES
        while (part := await self._part()) is not None:
            if part.name == FILE:
                raise _wrong_number_of_files()
            await self._until(self._delimiter)
        async for piece in self._body:
            self._unread += piece
            if len(self._unread) > len(_LINE):
                break
        if bytes(self._unread) not in (b"", _LINE):
            raise _malformed("Something follows its end.")

    async def _part(self) -> _Part | None:
        """Return the part that begins here; None at the form's end."""
        while len(self._unread) < len(_LINE):
            await self._more()
        mark = bytes(self._unread[: len(_LINE)])
        del self._unread[: len(_LINE)]
        if mark == _END:
            return None
        if mark != _LINE:
            raise _malformed("A boundary is followed by something else.")
        return _part_of(await self._until(_LINE + _LINE))

    async def _until(self, mark: bytes) -> bytes:
        """Take what comes before a mark, and the mark."""
        start = 0
        while (found := self._unread.find(mark, start)) < 0 and len(self._unread) <= self._left:
            start = max(0, len(self._unread) - len(mark) + 1)
            await self._more()
        self._left -= found + len(mark)
        if found < 0 or self._left < 0:
            raise S3Error("MaxPostPreDataLengthExceededError")
        data = bytes(memoryview(self._unread)[:found])
        del self._unread[: found + len(mark)]
        return data

    async def _more(self) -> None:
        piece = await anext(aiter(self._body), b"")
        if not piece:
            raise _malformed("It ends before its last boundary.")
        self._unread += piece

    def _expand(self) -> None:
        """Put the file's name in the place of ``${filename}``, before anything is checked."""
        for name, value in self.fields.items():
            if FILENAME in value:
                if not self.filename:
                    raise S3Error("InvalidArgument", f"The field {name} needs a file with a name.")
                self.fields[name] = value.replace(FILENAME, self.filename)


def _part_of(head: bytes) -> _Part:
    dispositions = []
    for line in head.split(_LINE):
        match = _HEADER.fullmatch(line)
        name = match[1].lower() if match is not None else b""
        if match is not None and name == b"content-disposition":
            dispositions.append(match[2])
        elif match is not None and name == b"content-transfer-encoding":
            if match[2].lower() not in _ENCODINGS:
                raise _malformed("A part has an encoding of its own.")
        elif name not in _WITHOUT_EFFECT:
            raise _malformed("A header of a part is not known.")
    if len(dispositions) != 1:
        raise _malformed("A part has no Content-Disposition, or two.")
    # A few clients send ``filename*`` beside ``filename``, against RFC 7578.
    found = _parameters(dispositions[0], b"form-data", b"name", b"filename", b"filename*")
    name = _text(found.get(b"name", b"")).lower()
    if not name:
        raise _malformed("A field has no name.")
    # Some browsers send the path of the file.
    filename = re.split(r"[/\\]", _text(found.get(b"filename", b"")))[-1]
    return _Part(name, filename)


def _parameters(text: bytes, kind: bytes, *names: bytes) -> dict[bytes, bytes]:
    """Return the parameters of a header's value, which begins with its kind."""
    if text[: len(kind)].lower() != kind:
        raise _malformed("A header is not that of a form.")
    found: dict[bytes, bytes] = {}
    at = len(kind)
    while at < len(text):
        match = _PARAMETER.match(text, at)
        name = match[1].lower() if match is not None else b""
        if match is None or name not in names or name in found:
            raise _malformed("A parameter of a header is not known, or occurs twice.")
        found[name] = match[2].replace(b'\\"', b'"') if match[3] is None else match[3]
        at = match.end()
    return found


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _malformed("A text is not UTF-8 (accept-charset).") from None


def _malformed(why: str) -> S3Error:
    message = f"The body of your POST request is not well-formed multipart/form-data. {why}"
    return S3Error("MalformedPOSTRequest", message)


def _wrong_number_of_files() -> S3Error:
    return S3Error("IncorrectNumberOfFilesInPostRequest")
