"""The rules of HTTP caching: which responses are stored, for how long, and when they are reused.

A shared cache. Sources: RFC 9111 (storage, freshness, age, Vary, invalidation), RFC 5861 and RFC
9111 §4.2.4 (stale-while-revalidate, stale-if-error), RFC 9213 (CDN-Cache-Control). Times are Unix
seconds.
The origin gets only those parts of a client's request that the key has (``cache_keys``), so a
stored response never belongs to one client.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from edgecache.http.response_head import http_date, parse_http_date

Pairs = Sequence[tuple[str, str]]

# Methods that are safe (IANA's registry of methods), tunnels, and orders to caches. All others are
# unsafe, or nobody knows (RFC 9111 §4.4).
SAFE: Final = frozenset(
    {"GET", "HEAD", "OPTIONS", "PROPFIND", "QUERY", "REPORT", "SEARCH", "TRACE"}
)
NOT_FORWARDED: Final = SAFE | {"BAN", "CONNECT", "PRI", "PURGE", "REFRESH"}
COOKIES: Final = frozenset({"set-cookie", "set-cookie2"})
HOP_BY_HOP: Final = frozenset(
    {
        "age",
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# X-Accel-Redirect names a file or a location of nginx: any tenant's, so only the brain may say it.
NGINX: Final = "x-accel-"
# RFC 9111 §4.2.2: a tenth of the time since the last change, at most a day.
HEURISTIC_SHARE: Final = 0.1
MAX_HEURISTIC_S: Final = 86_400
# RFC 9110 §15.1: these may be reused without explicit freshness.
HEURISTIC: Final = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
UNDERSTOOD: Final = frozenset(status.value for status in HTTPStatus) - {206, 304}
# Responses that a stale one may replace (RFC 5861 §4).
ERRORS: Final = frozenset({500, 502, 503, 504})
# Temporary errors: they do not invalidate the stored response.
TRANSIENT: Final = ERRORS | {429}
# The directory keeps no larger head: it is held in memory.
HEAD_LIMIT_CHARS: Final = 16_384
# Fields that say how long caches and clients keep a response.
OF_KEEPING: Final = frozenset({"cache-control", "expires", "pragma", "surrogate-control"})
TARGETED_CONTROL: Final = "-cache-control"
# RFC 9111 §1.2.2: larger values count as this.
MAX_DELTA_S: Final = 2**31
DIRECTIVE: Final = re.compile(
    r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:=(?:\"((?:[^\"\\]|\\.)*)\"|([^,;\s]*)))?"
)
# A member of RFC 8941's dictionary, as cache directives use it: lower-case keys, integers, flags.
TARGETED: Final = re.compile(
    r"(?!(?:s-maxage|max-age|stale-while-revalidate|stale-if-error)=\")"
    r"[a-z*][a-z0-9_.*-]*(?:=(?:-?\d{1,15}|\?[01]|\"[^\"]*\"|[A-Za-z*][\w.:/*-]*))?"
)
# RFC 9110 §5.6.7: IMF-fixdate, RFC 850 and asctime; nothing else is a date.
DATES: Final = re.compile(
    r"[a-z]{3}, \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d GMT"
    r"|[a-z]{6,9}, \d\d-[a-z]{3}-\d\d \d\d:\d\d:\d\d GMT"
    r"|[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}",
    re.IGNORECASE,
)


class Reuse(StrEnum):
    """How a stored response may be used now."""

    FRESH = "fresh"
    # Send it, and revalidate it in the background.
    STALE_WHILE_REVALIDATE = "stale-while-revalidate"
    # Revalidate it at the origin first.
    REVALIDATE = "revalidate"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """What is stored of a response beside its body.

    status: of the response. at: when it was received. age_s: its age then. lifetime_s: how long it
    is fresh, from age 0. stale_while_revalidate_s, stale_if_error_s: how long after that it may be
    used stale. must_revalidate: never used stale. etag, last_modified: as the origin sent them.
    vary: names of the request headers that it depends on. headers: end to end, lower-case names.
    """

    at: float
    age_s: int
    lifetime_s: int
    stale_while_revalidate_s: int
    stale_if_error_s: int
    must_revalidate: bool
    etag: str
    last_modified: str
    vary: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    status: int = 200

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON, for the directory."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "StoredResponse":
        """Return what ``as_json`` was made of."""
        pairs = tuple((str(name), str(value)) for name, value in row["headers"])
        return cls(**{**row, "vary": tuple(row["vary"]), "headers": pairs})


def directives(values: Iterable[str]) -> dict[str, str]:
    """Return Cache-Control's directives: names in lower case, '' for one without a value.

    A directive that occurs twice with different values is invalid (RFC 9111 §4.2.1: a cache is
    encouraged to consider the response stale): an age then reads as 0.
    """
    found: dict[str, str] = {}
    for match in DIRECTIVE.finditer(",".join(values)):
        name = match[1].lower()
        value = (match[2] if match[2] is not None else match[3]) or ""
        found[name] = value if found.get(name, value) == value else "0"
    return found


def controls(headers: Pairs) -> tuple[dict[str, str], bool]:
    """Return the directives that apply to this cache, and whether they are targeted at it.

    RFC 9213 §2.2: a CDN-Cache-Control that is valid and not empty replaces Cache-Control and
    Expires; an invalid one is ignored.
    """
    targeted = ",".join(value for name, value in headers if name == "cdn-cache-control")
    members = [member.strip() for member in targeted.split(",")] if targeted.strip() else []
    if members and all(TARGETED.fullmatch(member) for member in members):
        return directives([targeted]), True
    return directives(value for name, value in headers if name == "cache-control"), False


def judge(
    headers: Pairs,
    *,
    asked_at: float,
    answered_at: float,
    status: int = 200,
    has_credentials: bool = False,
) -> StoredResponse | None:
    """Return what to store of a response, None if a shared cache must not store it.

    headers: lower-case names; those of a 304 are merged with the stored ones first (``renewed``).
    has_credentials: the request was sent with a client's Authorization.
    """
    if not _is_storable(status, headers, has_credentials=has_credentials):
        return None
    return without_cookies(
        described(headers, asked_at=asked_at, answered_at=answered_at, status=status)
    )


def described(
    headers: Pairs, *, asked_at: float, answered_at: float, status: int = 200
) -> StoredResponse:
    """Return a response with its freshness, even if it may not be stored."""
    control, is_targeted = controls(headers)
    fields = fields_of(headers)
    must_revalidate = bool(control.keys() & {"must-revalidate", "proxy-revalidate"})
    lifetime_s = _lifetime(control, fields, answered_at, status, has_expires=not is_targeted)
    return StoredResponse(
        at=answered_at,
        age_s=_age_at_arrival(fields, asked_at, answered_at),
        lifetime_s=0 if "no-cache" in control else lifetime_s,
        stale_while_revalidate_s=_seconds(control.get("stale-while-revalidate")) or 0,
        stale_if_error_s=_seconds(control.get("stale-if-error")) or 0,
        must_revalidate=must_revalidate or "no-cache" in control,
        etag=fields.get("etag", ""),
        last_modified=fields.get("last-modified", ""),
        vary=tuple(sorted(set(names_of(fields.get("vary", ""))))),
        headers=_with_date(tuple(end_to_end(headers)), answered_at),
        status=status,
    )


def without_cookies(found: StoredResponse) -> StoredResponse:
    """Return a response as several clients may get it."""
    return replace(found, headers=tuple(pair for pair in found.headers if pair[0] not in COOKIES))


def for_one_client(headers: Pairs, *, within_s: int) -> list[tuple[str, str]]:
    """Return headers with which only the client may keep a response, and no longer than some time.

    within_s: as max-age counts, from age 0. It is kept for as long as the origin's max-age at most;
    without one it is revalidated.
    """
    control = directives(value for name, value in headers if name == "cache-control")
    kept = [
        (name, value)
        for name, value in headers
        if name not in OF_KEEPING and not name.endswith(TARGETED_CONTROL)
    ]
    allowed_s = max(0, min(_seconds(control.get("max-age")) or 0, within_s))
    said = [
        name
        for name in ("no-store", "no-cache", "must-revalidate", "no-transform")
        if name in control
    ]
    return [*kept, ("cache-control", ", ".join(["private", f"max-age={allowed_s}", *said]))]


def is_useful(stored: StoredResponse) -> bool:
    """True if a stored response can be used again: fresh, stale or revalidated."""
    return bool(
        stored.lifetime_s > stored.age_s
        or stored.stale_while_revalidate_s
        or stored.stale_if_error_s
        or (stored.status == HTTPStatus.OK and (stored.etag or stored.last_modified))
    )


def is_for_all(status: int, headers: Pairs, *, has_credentials: bool = False) -> bool:
    """True if other clients may have a response: a shared cache is not forbidden to store it."""
    control, is_targeted = controls(headers)
    fields = fields_of(headers)
    is_understood = status in UNDERSTOOD
    is_forbidden = "no-store" in control and not ("must-understand" in control and is_understood)
    if is_forbidden or "private" in control or "*" in names_of(fields.get("vary", "")):
        return False
    is_explicit = bool(control.keys() & {"public", "s-maxage"})
    # What was sent with credentials: RFC 9111 §3.5.
    if has_credentials and not is_explicit and "must-revalidate" not in control:
        return False
    # A cookie is meant for one client, unless the origin says explicitly that it is not.
    return is_targeted or is_explicit or COOKIES.isdisjoint(fields)


def _is_storable(status: int, headers: Pairs, *, has_credentials: bool) -> bool:
    """True if a shared cache may store a response (RFC 9111 §3), and this one does."""
    if not is_for_all(status, headers, has_credentials=has_credentials):
        return False
    control, is_targeted = controls(headers)
    if status in {206, 304} or (status not in UNDERSTOOD and "must-understand" in control):
        return False
    has_freshness = is_targeted or any(name == "expires" for name, _ in headers)
    has_freshness |= bool(control.keys() & {"public", "max-age", "s-maxage"})
    size = sum(len(name) + len(value) for name, value in headers)
    return size <= HEAD_LIMIT_CHARS and (has_freshness or status in HEURISTIC)


def allows_negative_caching(headers: Pairs) -> bool:
    """True if the origin says nothing against keeping a 404 for a moment."""
    control, _ = controls(headers)
    if control.keys() & {"no-store", "private", "no-cache"} or "expires" in dict(headers):
        return False
    return _seconds(control.get("s-maxage", control.get("max-age"))) != 0


def confirms(stored: StoredResponse, confirmation: Pairs) -> bool:
    """True unless a 304 has the ETag of another response (RFC 9111 §4.3.4)."""
    etag = dict(confirmation).get("etag", stored.etag)
    return etag.removeprefix("W/") == stored.etag.removeprefix("W/")


def renewed(
    stored: StoredResponse, confirmation: Pairs, *, asked_at: float, answered_at: float
) -> StoredResponse | None:
    """Return a stored response updated by a 304 (RFC 9111 §3.2, §4.3.4).

    None if the 304 forbids to store it any longer.
    """
    confirmed = {name for name, _ in confirmation} - HOP_BY_HOP
    merged = [pair for pair in stored.headers if pair[0] not in confirmed]
    merged += [pair for pair in confirmation if pair[0] in confirmed]
    return judge(merged, asked_at=asked_at, answered_at=answered_at, status=stored.status)


def age_s(stored: StoredResponse, *, now: float) -> int:
    """Return the age of a response (RFC 9111 §4.2.3)."""
    return stored.age_s + max(0, int(now - stored.at))


def use(stored: StoredResponse, *, now: float) -> Reuse:
    """Return how a stored response may be used."""
    beyond = age_s(stored, now=now) - stored.lifetime_s
    if beyond < 0:
        return Reuse.FRESH
    if beyond < stored.stale_while_revalidate_s and not stored.must_revalidate:
        return Reuse.STALE_WHILE_REVALIDATE
    return Reuse.REVALIDATE


def serves_on_error(stored: StoredResponse, *, now: float) -> bool:
    """True if it may be used when the origin fails (RFC 5861 §4)."""
    beyond = age_s(stored, now=now) - stored.lifetime_s
    return not stored.must_revalidate and beyond < stored.stale_if_error_s


def conditions(stored: StoredResponse) -> list[tuple[str, str]]:
    """Return the headers that revalidate a stored response (RFC 9111 §4.3.1)."""
    asked = []
    if stored.etag:
        asked.append(("if-none-match", stored.etag))
    if stored.last_modified:
        asked.append(("if-modified-since", stored.last_modified))
    return asked


def invalidated(target: str, status: int, headers: Pairs) -> tuple[str, ...]:
    """Return the URLs whose stored responses an unsafe request invalidates (RFC 9111 §4.4).

    target: the request's URL.
    headers: the response's, with lower-case names.

    An error invalidates no URL, and a response only URLs of its own origin.
    """
    if not 200 <= status < 400:
        return ()
    named = [value for name, value in headers if name in {"location", "content-location"}]
    urls = [target, *(resolved(target, value) for value in named)]
    home = site(target)
    return tuple(dict.fromkeys(url for url in urls if url and site(url) == home))


def resolved(base: str, reference: str) -> str:
    """Return the URL that a reference means, without fragment; '' for an invalid reference."""
    try:
        return urljoin(base, reference.strip(" \t")).partition("#")[0]
    except ValueError:
        return ""


def site(url: str) -> tuple[str, str, int | None] | None:
    """Return a URL's origin (RFC 6454 §4): scheme, host, port; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def fields_of(headers: Pairs) -> dict[str, str]:
    """Return headers by name; what one name has several times is joined, as RFC 9110 §5.3 says."""
    joined: dict[str, str] = {}
    for name, value in headers:
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def names_of(text: str) -> list[str]:
    """Return the names in a list of headers, in lower case."""
    return [name.strip().lower() for name in text.split(",") if name.strip()]


def _seconds(text: str | None) -> int | None:
    """Parse delta-seconds; an invalid number counts as 0, which is stale (RFC 9111 §4.2.1)."""
    if text is None:
        return None
    return (
        min(int(text), MAX_DELTA_S) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    )


def _lifetime(
    control: Mapping[str, str],
    fields: Mapping[str, str],
    answered_at: float,
    status: int,
    *,
    has_expires: bool,
) -> int:
    for name in ("s-maxage", "max-age"):
        seconds = _seconds(control.get(name))
        if seconds is not None:
            return seconds
    born = _moment(fields.get("date", ""), answered_at)
    if has_expires and "expires" in fields:
        # An invalid Expires is in the past (RFC 9111 §5.3).
        return max(0, int(_moment(fields["expires"], born) - born))
    if status not in HEURISTIC and "public" not in control:
        return 0
    changed = _moment(fields.get("last-modified", ""), born)
    return min(max(0, int((born - changed) * HEURISTIC_SHARE)), MAX_HEURISTIC_S)


def _age_at_arrival(fields: Mapping[str, str], asked_at: float, answered_at: float) -> int:
    apparent = max(0.0, answered_at - _moment(fields.get("date", ""), answered_at))
    stated_s = _seconds(fields.get("age", "0").partition(",")[0].strip()) or 0
    return min(int(max(apparent, stated_s + max(0.0, answered_at - asked_at))), MAX_DELTA_S)


def _moment(text: str, otherwise: float) -> float:
    moment = parse_http_date(text) if DATES.fullmatch(text) else None
    return otherwise if moment is None else moment.timestamp()


def _with_date(headers: tuple[tuple[str, str], ...], now: float) -> tuple[tuple[str, str], ...]:
    """Return headers with the time when they came, if the origin has no clock (RFC 9110 §6.6.1)."""
    if any(name == "date" for name, _ in headers):
        return headers
    return (*headers, ("date", http_date(int(now))))


def end_to_end(headers: Pairs) -> Iterable[tuple[str, str]]:
    """Return the end-to-end headers, without those that an nginx in front would obey."""
    listed = {word for name, value in headers if name == "connection" for word in names_of(value)}
    return (
        (name, value)
        for name, value in headers
        if name not in HOP_BY_HOP and name not in listed and not name.startswith(NGINX)
    )
