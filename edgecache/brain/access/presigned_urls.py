"""URLs and forms that the platform signs, for one bucket and a short time.

A URL is for one method and one key, a form for files under one key or one prefix. Source: AWS,
"Authenticating Requests: Using Query Parameters (AWS Signature Version 4)", "… POST".
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import orjson

from edgecache.brain.access.platform_keys import SigningKey
from edgecache.brain.aws.posted_form import FILENAME
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRequest:
    """What a form permits: a file of this key, or of a key that its name ends.

    fields: further ones, with these values.
    """

    key: str
    is_prefix: bool
    max_bytes: int
    fields: Mapping[str, str]


def presigned_form(
    key: SigningKey,
    endpoint: str,
    bucket: str,
    request: FormRequest,
    *,
    expires_s: int,
    now: datetime,
) -> tuple[str, dict[str, str]]:
    """Return the URL that a form is posted to, and its fields, which precede the file.

    Source: AWS, "Creating a POST policy".
    """
    stamp = now.strftime(AMZ_DATE)
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    fixed = {
        **request.fields,
        "x-amz-algorithm": ALGORITHM,
        "x-amz-credential": f"{key.id}/{scope}",
        "x-amz-date": stamp,
    }
    name = request.key + FILENAME if request.is_prefix else request.key
    ends_at = now + timedelta(seconds=expires_s)
    document = {
        "expiration": f"{ends_at:%Y-%m-%dT%H:%M:%SZ}",
        "conditions": [
            {"bucket": bucket},
            ["starts-with" if request.is_prefix else "eq", "$key", request.key],
            ["content-length-range", 0, request.max_bytes],
            *({each: value} for each, value in fixed.items()),
        ],
    }
    policy = base64.b64encode(orjson.dumps(document)).decode()
    made = signature(signing_key(key.secret, stamp[:8], REGION, "s3"), policy)
    signed = {"key": name, **fixed, "policy": policy, "x-amz-signature": made}
    return f"{endpoint}/{bucket}", signed


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
