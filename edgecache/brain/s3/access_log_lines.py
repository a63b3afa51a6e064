"""A request as a line of Amazon S3's server access log, so that its tools read it.

Fields that a client chooses cannot end a field or a line: quotes, backslashes, control characters
and what is not ASCII are written as ``%`` and two digits. Values of the query that may be secrets
are masked, also in the address of the page before. Source: AWS, "Amazon S3 server access log
format".
"""

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

from common.logs import REDACTED, SECRET_NAME, SECRET_SHAPE, SECRET_SIGNS
from edgecache.brain.aws.sigv4.canonical import SIGNATURE_PARAMETER
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.s3.listing_query import owner_id
from edgecache.brain.s3.request_log import LogEntry
from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope

NOTHING: Final = "-"
URI_CHARS: Final = 4096
HEADER_CHARS: Final = 1024
MASKED: Final = "***"
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNSAFE: Final = re.compile(r'[^ -~]|["\\]')
_SIGNATURE: Final = re.compile(r"signature|^sig$|^policy$", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"([?&;])([^=&;?#]+)=([^&;#]+)")
# What AWS calls the operations whose method and path do not say it.
_OPERATIONS: Final = {
    "AbortMultipartUpload": "DELETE.UPLOAD",
    "CompleteMultipartUpload": "POST.UPLOAD",
    "CopyObject": "COPY.OBJECT",
    "CreateMultipartUpload": "POST.UPLOADS",
    "DeleteObjectTagging": "DELETE.OBJECT_TAGGING",
    "DeleteObjects": "POST.MULTI_OBJECT_DELETE",
    "GetObjectTagging": "GET.OBJECT_TAGGING",
    "ListMultipartUploads": "GET.UPLOADS",
    "ListObjectVersions": "GET.BUCKETVERSIONS",
    "ListParts": "GET.UPLOAD",
    "PutObjectTagging": "PUT.OBJECT_TAGGING",
    "UploadPart": "PUT.PART",
    "UploadPartCopy": "COPY.PART",
}


def line_of(
    bucket: BucketInfo, entry: LogEntry, scope: HttpScope, exchange: Exchange, *, now: datetime
) -> bytes:
    """Return a request's line. now: its end."""
    seconds = time.perf_counter() - exchange.began
    came = now - timedelta(seconds=seconds)
    query = f"?{scope.query_string}" if scope.query_string else ""
    uri = _clean(f"{scope.raw_path}{query}", URI_CHARS).replace(" ", "%20")
    version, kind = _authentication(entry, scope)
    fields = (
        *_first_fields(bucket, came),
        _bare(entry.client or scope.client_address),
        entry.access_key or NOTHING,
        entry.request_id or NOTHING,
        _operation(entry, scope),
        quote(_redacted(entry.key)) or NOTHING,
        f'"{_bare(scope.method)} {uri} HTTP/{scope.http_version}"',
        str(exchange.status or NOTHING),
        _bare(entry.error or exchange.cause),
        str(exchange.sent_bytes or NOTHING),
        NOTHING,
        str(int(seconds * 1000)),
        NOTHING,
        # Athena's pattern for it knows no blank.
        _quoted(scope.headers.get("referer")).replace(" ", "%20"),
        _quoted(scope.headers.get("user-agent")),
        # Of the version, the host, the signature; of TLS, which ends before the brain.
        NOTHING,
        NOTHING,
        version,
        NOTHING,
        kind,
        _bare(scope.authority),
        NOTHING,
        NOTHING,
        NOTHING,
    )
    return (" ".join(fields) + "\n").encode()


def line_of_missing(bucket: BucketInfo, count: int, now: datetime) -> bytes:
    """Return a line that says how many lines are missing: in the place of the key."""
    fields = [NOTHING] * 23
    fields[3] = "LOG.MISSING.LINES"
    fields[4] = str(count)
    for quoted in (5, 12, 13):
        fields[quoted] = f'"{NOTHING}"'
    return (" ".join((*_first_fields(bucket, now), *fields)) + "\n").encode()


def _first_fields(bucket: BucketInfo, moment: datetime) -> tuple[str, str, str]:
    moment = moment.astimezone(UTC)
    shown = f"[{moment:%d}/{MONTHS[moment.month - 1]}/{moment:%Y:%H:%M:%S} +0000]"
    return _owner(bucket.tenant), bucket.name, shown


_owner = lru_cache(1024)(owner_id)


def _operation(entry: LogEntry, scope: HttpScope) -> str:
    if entry.operation == "CDN":
        return f"WEBSITE.{_bare(scope.method)}.OBJECT"
    what = "OBJECT" if entry.key else "BUCKET"
    return f"REST.{_OPERATIONS.get(entry.operation, f'{_bare(scope.method)}.{what}')}"


def _authentication(entry: LogEntry, scope: HttpScope) -> tuple[str, str]:
    """Return the version of a request's signature, and where it is."""
    if not entry.access_key:
        return NOTHING, NOTHING
    if entry.form_signature:
        # The format knows no place of it.
        return entry.form_signature, NOTHING
    header = scope.headers.get("authorization")
    if header:
        return "SigV4" if header.startswith("AWS4") else "SigV2", "AuthHeader"
    return "SigV4" if SIGNATURE_PARAMETER in scope.query_string else "SigV2", "QueryString"


def _quoted(text: str) -> str:
    """Return a header between quotes."""
    return f'"{_clean(text, HEADER_CHARS) or NOTHING}"'


def _clean(text: str, limit: int) -> str:
    """Return a text without secrets and without what could end a field, cut to a length."""
    text = text[:limit]
    if "=" in text:
        text = _PARAMETER.sub(_masked, text)
    return _UNSAFE.sub(_escaped, _redacted(text))


def _redacted(text: str) -> str:
    if any(sign in text for sign in SECRET_SIGNS):
        return SECRET_SHAPE.sub(REDACTED, text)
    return text


def _bare(text: str) -> str:
    """Return a text without quotes: it contains no blank either."""
    return _UNSAFE.sub(_escaped, text[:HEADER_CHARS]).replace(" ", "%20") or NOTHING


def _masked(found: re.Match[str]) -> str:
    separator, name, _ = found.groups()
    plain = unquote(name)
    is_secret = SECRET_NAME.search(plain) or _SIGNATURE.search(plain)
    return f"{separator}{name}={MASKED}" if is_secret else found[0]


def _escaped(found: re.Match[str]) -> str:
    # Texts of HTTP are bytes, in Latin-1.
    return "".join(f"%{byte:02X}" for byte in found[0].encode("latin-1", "replace"))
