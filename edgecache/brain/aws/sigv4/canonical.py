"""The canonical request and the string to sign.

Source: AWS, "Authenticating Requests (AWS Signature Version 4)".
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from edgecache.brain.aws.requests import S3Request
from edgecache.http.headers import Headers

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SIGNATURE_PARAMETER: Final = "X-Amz-Signature"
# Its encoding is the path itself.
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9._~/-]*")
_BLANKS: Final = re.compile(r"[ \t]+")


def encoded(text: str | bytes, *, safe: str = "") -> str:
    """Return the URI encoding that signatures use: all but ``A-Za-z0-9-._~`` in upper-case hex."""
    return quote(text, safe="-._~" + safe)


def canonical_request(
    request: S3Request, signed_headers: Sequence[str], payload_hash: str, *, uri: str
) -> bytes:
    """Return the bytes that are hashed and signed. uri: the encoded path."""
    parameters = request.parameters
    lines = [request.method, uri, canonical_query(parameters) if parameters else ""]
    lines += _header_lines(request.headers, signed_headers)
    lines += ["", ";".join(signed_headers), payload_hash]
    return "\n".join(lines).encode("latin-1", "replace")


def uris(raw_path: str) -> tuple[str, ...]:
    """Return the encodings of the path that may be signed: as sent, and as AWS encodes it.

    Both mean the same key.
    """
    if _PLAIN_PATH.fullmatch(raw_path):
        return (raw_path,)
    written = encoded(unquote_to_bytes(raw_path.encode("latin-1")), safe="/")
    return (raw_path,) if raw_path == written else (raw_path, written)


def string_to_sign(canonical: bytes, *, amz_date: str, scope: str) -> str:
    """Return the text that is signed. scope: ``date/region/s3/aws4_request``."""
    return f"{ALGORITHM}\n{amz_date}\n{scope}\n{hashlib.sha256(canonical).hexdigest()}"


@lru_cache(maxsize=4096)
def signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def signature(key: bytes, text: str) -> str:
    """Return the signature of a text, in hex."""
    return hmac.digest(key, text.encode(), "sha256").hex()


def canonical_query(parameters: Iterable[tuple[str, str]]) -> str:
    """Return the query as it is signed: all parameters except the signature itself."""
    pairs = sorted(
        (encoded(name), encoded(value)) for name, value in parameters if name != SIGNATURE_PARAMETER
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _header_lines(headers: Headers, names: Sequence[str]) -> list[str]:
    if headers.are_distinct:
        # Nearly always: no field twice, and no blanks that have to be joined.
        lines = [f"{name}:{headers.get(name).strip()}" for name in names]
        text = "".join(lines)
        if "  " not in text and "\t" not in text:
            return lines
    return [f"{name}:{_header_value(headers, name)}" for name in names]


def _header_value(headers: Headers, name: str) -> str:
    return ",".join(_BLANKS.sub(" ", value.strip()) for value in headers.get_all(name))
