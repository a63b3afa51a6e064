"""Request and response bodies: one strict JSON object, read and written with orjson."""

import zlib
from collections.abc import Mapping
from typing import Any, Final

import orjson
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

from common.errors import InvalidRequest, MalformedJson, PayloadTooLarge, UnsupportedMedia

# zlib's value for: only with gzip's header and checksum.
# Of a JSON body; a view may have its own limit.
BODY_LIMIT_BYTES: Final = 65_536
GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
# RFC 9110 §15.5.16: in a 415 it lists the supported encodings of bodies.
GZIP_ACCEPTED: Final = {"Accept-Encoding": "gzip, identity"}

EMPTY_OBJECT: Final = b"{}"


def read_body(stream: Any, *, encoding: str, limit_bytes: int) -> bytes:
    """Return the decoded body.

    encoding: the Content-Encoding header: empty, ``identity`` or ``gzip``. The limit applies to the
    sent and to the decompressed bytes, and no more than that is decompressed.
    Raises PayloadTooLarge (413), UnsupportedMedia (415), MalformedJson (400: incomplete gzip, or
    the client stopped sending).
    """
    try:
        # Reading one byte beyond the limit detects a body that is too long.
        body: bytes = stream.read(limit_bytes + 1)
    except OSError as exc:
        raise MalformedJson("The body did not arrive.") from exc
    name = encoding.strip().lower()
    if name in {"gzip", "x-gzip"}:
        body = _expand(body, limit_bytes)
    elif name not in {"", "identity"}:
        raise UnsupportedMedia("Content-Encoding may be gzip.", headers=GZIP_ACCEPTED)
    if len(body) > limit_bytes:
        raise PayloadTooLarge(f"The limit here is {limit_bytes} bytes.")
    return body


def _expand(body: bytes, limit_bytes: int) -> bytes:
    if len(body) > limit_bytes:
        raise PayloadTooLarge(f"The limit here is {limit_bytes} bytes.")
    expander = zlib.decompressobj(GZIP_WBITS)
    try:
        expanded = expander.decompress(body, limit_bytes + 1)
    except zlib.error as exc:
        raise MalformedJson("The body is not gzip.") from exc
    if len(expanded) <= limit_bytes and (not expander.eof or expander.unused_data):
        raise MalformedJson("The body is not one whole gzip member.")
    return expanded


def refuse_body(stream: Any) -> None:
    """Raise InvalidRequest (400) unless a body is empty or ``{}``, which many clients always send.

    stream: None without a body. At most three bytes are read.
    """
    if stream is not None and stream.read(len(EMPTY_OBJECT) + 1) not in {b"", EMPTY_OBJECT}:
        raise InvalidRequest("This operation takes no body.")


class StrictJsonParser(BaseParser):
    """Read one JSON object, at most the view's ``body_limit_bytes`` long."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the object.

        Raises MalformedJson (400: not JSON, not an object, NaN, not UTF-8), and the errors of
        ``read_body`` (413, 415).
        """
        context = parser_context or {}
        limit = getattr(context.get("view"), "body_limit_bytes", BODY_LIMIT_BYTES)
        headers = getattr(context.get("request"), "META", {})
        encoding = headers.get("HTTP_CONTENT_ENCODING", "")
        body = read_body(stream, encoding=encoding, limit_bytes=limit)
        try:
            value = orjson.loads(body)
        except (orjson.JSONDecodeError, RecursionError) as exc:
            raise MalformedJson from exc
        if not isinstance(value, dict):
            raise MalformedJson
        return value


class OrjsonRenderer(JSONRenderer):
    """Write JSON with orjson: UUIDs and aware datetimes as RFC 3339 text, in one pass."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return the bytes; b"" for None, because a 204 has no body."""
        return b"" if data is None else orjson.dumps(data, default=str, option=orjson.OPT_UTC_Z)
