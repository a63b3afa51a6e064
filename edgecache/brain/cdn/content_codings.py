"""Which responses are compressed, in which content coding, and their headers then.

A response is compressed only where no one asks for the bytes themselves: no range, no
digest, no ``no-transform`` on either side. What is not kept for all clients is passed on as it is,
so that its compressed length tells no secret of a page (BREACH).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from edgecache.brain.cdn.conditional_requests import CHECKSUMS, OF_CONTENT
from edgecache.brain.cdn.lookup import LookupResult
from edgecache.brain.cdn.urls import CdnRequest
from edgecache.brain.delivery.compression import COMPRESSORS
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.http_caching.cache_keys import COOKIE, ENCODING
from edgecache.http.response_head import HeaderPairs

# Smaller ones fit one packet anyway.
MIN_BYTES: Final = 1024
MAX_BYTES: Final = 2**20
TYPES: Final = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/wasm",
        "application/x-javascript",
        "application/x-ndjson",
        "application/xml",
        "font/otf",
        "font/ttf",
    }
)
SUFFIXES: Final = ("+json", "+xml")
# These name the bytes that are sent, or say that they are in a coding already.
OF_BYTES: Final = OF_CONTENT | {"content-encoding", "digest", "repr-digest"}
# A client that sends one of these wants the bytes as they are.
WANTS_BYTES: Final = frozenset(
    {
        "if-match",
        "if-range",
        "range",
        "want-content-digest",
        "want-digest",
        "want-repr-digest",
        "x-amz-checksum-mode",
    }
)
CONTROLS: Final = ("cache-control", "cdn-cache-control")
NO_TRANSFORM: Final = "no-transform"
# Browsers send less than a hundred characters.
ACCEPT_LIMIT_CHARS: Final = 256
WEIGHT: Final = re.compile(r"q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)")


def is_offered(request: CdnRequest, result: LookupResult, headers: HeaderPairs) -> bool:
    """True if a response is compressed for the clients that accept it.

    headers: of the complete response, lower-case names.
    """
    size = result.version.size
    if result.status != HTTPStatus.OK or not (MIN_BYTES <= size <= MAX_BYTES or size < 0):
        return False
    fields = caching_rules.fields_of(headers)
    kind = fields.get("content-type", "").partition(";")[0].strip().lower()
    if not (kind.startswith("text/") or kind in TYPES or kind.endswith(SUFFIXES)):
        return False
    # At a host that buckets share, the client's have no Set-Cookie.
    said = headers if result.stored is None else result.stored.headers
    return (
        OF_BYTES.isdisjoint(fields)
        and not any(name.startswith(CHECKSUMS) for name in fields)
        and not _forbids_transform(caching_rules.fields_of(said))
        # What is kept for one cookie may have a secret.
        and COOKIE not in request.policy.listed
        and (bool(result.version.sha256) or caching_rules.is_for_all(result.status, said))
    )


def coding_for(fields: Mapping[str, str]) -> str:
    """Return the content coding that a client gets where one is offered, '' for none.

    fields: the request's headers, lower-case names.
    """
    accepted = fields.get(ENCODING, "")
    if not accepted or not WANTS_BYTES.isdisjoint(fields) or _forbids_transform(fields):
        return ""
    return preferred(accepted)


@lru_cache(maxsize=1024)
def preferred(accepted: str) -> str:
    """Return the coding that an Accept-Encoding prefers, '' if that is none of ours.

    RFC 9110 §12.5.3. Of equal ones it is the first of ours; an unreadable weight counts as 0.
    """
    if len(accepted) > ACCEPT_LIMIT_CHARS:
        return ""
    weights: dict[str, float] = {}
    for member in accepted.lower().split(","):
        coding, semicolon, parameter = member.partition(";")
        found = WEIGHT.fullmatch(parameter.strip())
        weights[coding.strip()] = float(found[1]) if found else float(not semicolon)
    others = weights.get("*", 0.0)
    best = max(COMPRESSORS, key=lambda coding: weights.get(coding, others))
    weight = weights.get(best, others)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else ""


def varying(headers: HeaderPairs) -> HeaderPairs:
    """Return the headers of a response that depends on what codings a client accepts."""
    named = [value for name, value in headers if name == "vary"]
    if {"*", ENCODING} & set(caching_rules.names_of(",".join(named))):
        return headers
    others = [pair for pair in headers if pair[0] != "vary"]
    return [*others, ("vary", ", ".join([*named, "Accept-Encoding"]))]


def weakened(headers: HeaderPairs) -> HeaderPairs:
    """Return headers whose ETag says that other bytes mean the same (RFC 9110 §8.8.3)."""
    return [
        (name, f"W/{value}" if name == "etag" and not value.startswith("W/") else value)
        for name, value in headers
    ]


def encoded(headers: HeaderPairs, coding: str) -> list[tuple[str, str]]:
    """Return the headers of a response in a coding; ranges are of the bytes without one."""
    return [*(pair for pair in headers if pair[0] != "accept-ranges"), ("content-encoding", coding)]


def _forbids_transform(fields: Mapping[str, str]) -> bool:
    # Without parsing: a list of directives may be long.
    return any(NO_TRANSFORM in fields.get(name, "").lower() for name in CONTROLS)
