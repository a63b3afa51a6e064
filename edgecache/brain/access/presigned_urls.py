"""URLs that the platform signs: each for one method, one key of one bucket, and a short time.

Source: AWS, "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from edgecache.brain.access.platform_keys import SigningKey
from edgecache.brain.aws.sigv4.canonical import (
    ALGORITHM,
    SIGNATURE_PARAMETER,
    canonical_query,
    encoded,
    signature,
    signing_key,
    string_to_sign,
)
from edgecache.brain.aws.sigv4.verification import AMZ_DATE, UNSIGNED
from edgecache.brain.core.errors import KeyRefused

REGION: Final = "us-east-1"
# The only web origin whose scripts may use the URL; the signature covers it like all parameters.
ORIGIN_PARAMETER: Final = "x-zonal-origin"
_DOTS: Final = frozenset((".", ".."))


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRequest:
    """What a URL permits. parameters: in its query. headers: must be sent with these values."""

    method: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]


def presigned_url(
    key: SigningKey,
    endpoint: str,
    target: tuple[str, str],
    request: UrlRequest,
    *,
    expires_s: int,
    now: datetime,
) -> str:
    """Return the URL. endpoint: of the object API. target: bucket and key.

    Raises KeyRefused for a key that no URL can name.
    """
    path = _path(*target)
    headers = {"host": _host(endpoint), **request.headers}
    names = sorted(headers)
    stamp = now.strftime(AMZ_DATE)
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    parameters = {
        **request.parameters,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{key.id}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(expires_s),
        "X-Amz-SignedHeaders": ";".join(names),
    }
    query = canonical_query(parameters.items())
    lines = [f"{name}:{headers[name]}" for name in names]
    canonical = "\n".join([request.method, path, query, *lines, "", ";".join(names), UNSIGNED])
    text = string_to_sign(canonical.encode(), amz_date=stamp, scope=scope)
    made = signature(signing_key(key.secret, stamp[:8], REGION, "s3"), text)
    return f"{endpoint}{path}?{query}&{SIGNATURE_PARAMETER}={made}"


def _path(bucket: str, key: str) -> str:
    """Return the path of a key, which no client may confuse with another key's."""
    segments = key.split("/")
    if key in _DOTS:
        raise KeyRefused("No URL can name this key.")
    # Clients remove such segments, but not those that an encoded slash makes.
    is_hidden = not _DOTS.isdisjoint(segments)
    return f"/{bucket}/{encoded(key, safe='' if is_hidden else '/')}"


def _host(endpoint: str) -> str:
    """Return the Host header that clients send: without the scheme's own port."""
    parts = urlsplit(endpoint.lower())
    return parts.netloc.removesuffix(":443" if parts.scheme == "https" else ":80")
