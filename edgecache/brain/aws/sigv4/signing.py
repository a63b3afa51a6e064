"""AWS Signature Version 4, from the client's side, for requests to S3 origins.

Source: AWS, "Authenticating Requests: Using the Authorization Header".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from edgecache.brain.aws.sigv4.canonical import (
    ALGORITHM,
    encoded,
    signature,
    signing_key,
    string_to_sign,
)


@dataclass(frozen=True, slots=True)
class OriginCredentials:
    """A key pair for the origin. token: a session's, or empty."""

    access_key_id: str
    secret_access_key: str
    token: str = ""


def query_string(parameters: Mapping[str, str]) -> str:
    """Return the query as it is sent and signed."""
    pairs = sorted((encoded(name), encoded(value)) for name, value in parameters.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed(
    credentials: OriginCredentials,
    method: str,
    target: tuple[str, str],
    headers: Sequence[tuple[str, str]],
    *,
    region: str,
    payload_hash: str,
    now: datetime,
) -> list[tuple[str, str]]:
    """Return the headers (lower-case names, ``host`` among them) with those that sign them all.

    target: the encoded path and query. payload_hash: SHA-256 in hex, or UNSIGNED-PAYLOAD.
    """
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    named = [*headers, ("x-amz-date", stamp), ("x-amz-content-sha256", payload_hash)]
    if credentials.token:
        named.append(("x-amz-security-token", credentials.token))
    named.sort()
    names = ";".join(name for name, _ in named)
    canonical = "\n".join(
        [
            method,
            *target,
            *(f"{name}:{' '.join(value.split())}" for name, value in named),
            "",
            names,
            payload_hash,
        ]
    )
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = string_to_sign(canonical.encode(), amz_date=stamp, scope=scope)
    key = signing_key(credentials.secret_access_key, stamp[:8], region, "s3")
    authorization = (
        f"{ALGORITHM} Credential={credentials.access_key_id}/{scope},"
        f" SignedHeaders={names}, Signature={signature(key, text)}"
    )
    return [*named, ("authorization", authorization)]
