"""A request as S3 understands it: bucket, key, query, headers."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.posted_form import PostedForm
from edgecache.brain.core.values import KEY_LIMIT_BYTES, host_name
from edgecache.http.addresses import parse_address
from edgecache.http.headers import Headers
from edgecache.http.scope import HttpScope

PARAMETER_LIMIT: Final = 100
HOST_CHARS: Final = 255
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HEADER_NAME: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
# Names of AWS's own headers begin with it.
PREFIX: Final = "x-amz-"
# Parameters of a signature itself, in lower case.
_OF_SIGNATURES: Final = frozenset(
    f"x-amz-{name}"
    for name in (
        "algorithm",
        "content-sha256",
        "credential",
        "date",
        "expires",
        "security-token",
        "signature",
        "signedheaders",
    )
)
# AWS ignores these in a query. Its SDK for JavaScript signs the checksum of an empty body into the
# URL of each upload, long before there is one.
_WITHOUT_EFFECT: Final = ("x-amz-checksum-", "x-amz-sdk-checksum-")
# In URLs that boto3 presigns with version 2.
_OF_VERSION_2: Final = frozenset(("content-md5", "content-type"))
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class S3Request(NamedTuple):
    """A parsed request. key: empty for an operation on the bucket itself.

    is_host_style: the host name contains the bucket.
    parameters: the query in its order, decoded.
    raw_path: as it was sent, because the signature covers it.
    form: of a posted form; the key is one of its fields then.
    """

    method: str
    raw_path: str
    host: str
    is_host_style: bool
    bucket: str
    key: str
    parameters: tuple[tuple[str, str], ...]
    headers: Headers
    client: str
    request_id: str
    by_name: dict[str, str]
    form: PostedForm | None = None

    def query(self, name: str, default: str = "") -> str:
        """Return the first value of a parameter."""
        return self.by_name.get(name, default)

    def has(self, name: str) -> bool:
        """True if the query has this parameter, with a value or without."""
        return name in self.by_name

    def header(self, name: str, default: str = "") -> str:
        """Return a header's value, without surrounding whitespace."""
        return self.headers.get(name, default).strip()

    def integer(self, name: str, default: int, *, maximum: int) -> int:
        """Return a number of the query; as at AWS, a larger one counts as the maximum.

        Raises S3Error InvalidArgument.
        """
        text = self.by_name.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 10):
            raise S3Error(
                "InvalidArgument",
                f"Provided {name} not an integer or within integer range",
                extra={"ArgumentName": name, "ArgumentValue": text[:100]},
            )
        return min(int(text), maximum)


def parse(
    scope: HttpScope, domains: Sequence[str], request_id: str, *, client: str = ""
) -> S3Request:
    """Parse a request in virtual-host style under one of the domains, or in path style at one.

    client: its address, if that is not the peer's.
    Raises S3Error: InvalidRequest (another host), InvalidURI, InvalidBucketName, KeyTooLongError,
    InvalidArgument.
    """
    host = scope.authority
    bucket = bucket_of_host(host, domains)
    is_host_style = bool(bucket)
    if not is_host_style and not _is_own_host(host, domains):
        raise _not_own_host(host)
    parameters = _parameters(scope.query_string)
    key = decoded(scope.raw_path)[1:]
    if not is_host_style:
        bucket, slash, key = key.partition("/")
        if slash and not bucket:
            raise S3Error("InvalidBucketName", "The path begins with an empty name of a bucket.")
    check_name_and_key(bucket, key)
    by_name: dict[str, str] = {}
    for name, value in parameters:
        by_name.setdefault(name, value)
    return S3Request(
        method=scope.method,
        raw_path=scope.raw_path,
        host=host,
        is_host_style=is_host_style,
        bucket=bucket,
        key=key,
        parameters=parameters,
        headers=scope.headers,
        client=client or scope.client_address,
        request_id=request_id,
        by_name=by_name,
    )


def is_query_header(name: str) -> bool:
    """True if a presigned URL's parameter of this name stands for a header."""
    is_amz = name.lower().startswith(PREFIX) and not is_of_signature(name)
    return is_amz or name in _OF_VERSION_2


def is_of_signature(name: str) -> bool:
    """True if a parameter is part of a signature of version 4."""
    return name.lower() in _OF_SIGNATURES


def with_query_headers(request: S3Request, *, with_checksums: bool = False) -> S3Request:
    """Return a presigned request with the headers that its query contains, as AWS reads it.

    with_checksums: include checksums, for the text that is signed.

    A header that was also sent takes precedence, and the signature covers its value.

    Raises S3Error InvalidArgument: a name or a value that is not valid in a header.
    """
    found: list[tuple[str, str]] = []
    for name, value in request.parameters:
        lower = name.lower()
        if not is_query_header(name) or lower in request.headers:
            continue
        if lower.startswith(_WITHOUT_EFFECT) and not with_checksums:
            continue
        found.append((lower, header_value(lower, value)))
    if not found:
        return request
    return request._replace(headers=Headers([*request.headers.items(), *found]))


def header_value(name: str, text: str) -> str:
    """Return a text as a header of this name would have it: byte for byte.

    Raises S3Error InvalidArgument: a name or a value that is not valid in a header.
    """
    if not _HEADER_NAME.fullmatch(name) or _CONTROL.search(text):
        # Signatures of version 2 separate headers by line breaks, and names by colons.
        raise S3Error("InvalidArgument", extra={"ArgumentName": name[:100]})
    return text.encode().decode("latin-1")


def check_name_and_key(bucket: str, key: str) -> None:
    """Refuse what no bucket and no key can be.

    Raises S3Error: InvalidBucketName, KeyTooLongError, InvalidArgument.
    """
    if "\0" in bucket:
        raise S3Error("InvalidBucketName")
    size = len(key.encode())
    if size > KEY_LIMIT_BYTES:
        limits = {"Size": str(size), "MaxSizeAllowed": str(KEY_LIMIT_BYTES)}
        raise S3Error("KeyTooLongError", extra=limits)
    if "\0" in key:
        raise S3Error("InvalidArgument", "A key cannot contain NUL.")


def bucket_of_host(host: str, domains: Sequence[str]) -> str:
    """Return the bucket that a Host header names below one of the domains; '' if none."""
    name = host_name(host)
    if name in domains:
        return ""
    # Of a domain and one below it the longer one applies.
    above = max((each for each in domains if name.endswith("." + each)), key=len, default="")
    return name[: -len(above) - 1] if above else ""


def _is_own_host(host: str, domains: Sequence[str]) -> bool:
    """True if a Host header is a domain of the object API, or an IP address: path style."""
    name = host_name(host)
    return name in domains or parse_address(name.strip("[]")) is not None


def _not_own_host(host: str) -> S3Error:
    """Return the error for a host that may be a bucket's in virtual-host style: it is unknown."""
    return S3Error(
        "InvalidRequest",
        f'"{host[:HOST_CHARS]}" is not a host name of this object API, and whether it names a '
        "bucket is not known. If it is the API's name, or a bucket's below it, ZBRAIN_S3_DOMAINS "
        "must have the API's name; otherwise use path style (forcePathStyle: true) at the API's "
        "name or address.",
    )


def _parameters(query: str) -> tuple[tuple[str, str], ...]:
    if not query:
        return ()
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    if len(pairs) > PARAMETER_LIMIT:
        raise S3Error("InvalidArgument", "The query has too many parameters.")
    found = tuple((form_decoded(name), form_decoded(value)) for name, _, value in pairs)
    if any("\0" in name or "\0" in value for name, value in found):
        raise S3Error("InvalidArgument", "A parameter cannot contain NUL.")
    return found


def form_decoded(text: str) -> str:
    """Decode a text of a query, or of a header that AWS reads as one: a plus is a blank.

    Raises S3Error InvalidURI as ``decoded`` does.
    """
    return decoded(text.replace("+", " "))


def decoded(text: str) -> str:
    """Decode percent-encoding, as paths have it.

    Raises S3Error InvalidURI: a broken escape, or bytes that are not UTF-8.
    """
    if "%" not in text and text.isascii():
        return text
    if _BROKEN_ESCAPE.search(text):
        raise S3Error("InvalidURI")
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise S3Error("InvalidURI") from None
