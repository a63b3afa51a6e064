"""Answers to preflights, and the CORS headers of all other answers."""

import re
from typing import Final

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.s3.context import S3Response
from edgecache.brain.s3.cors.requests import Rules
from edgecache.brain.s3.cors.rules import ANY, METHODS, CorsRule, first_match
from edgecache.http.headers import Headers
from edgecache.http.response_head import HeaderPairs

ORIGIN: Final = "origin"
REQUEST_METHOD: Final = "access-control-request-method"
REQUEST_HEADERS: Final = "access-control-request-headers"
# On every answer under rules: a cache must not hand one origin's to another.
VARY: Final = (
    "vary",
    "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def headers_of(rules: Rules, method: str, headers: Headers) -> HeaderPairs:
    """Return the CORS headers of the answer to a request with an Origin."""
    if not rules:
        return ()
    origin = headers.get(ORIGIN)
    rule = first_match(rules, origin, method)
    return (VARY,) if rule is None else (*_allowed(rule, origin), VARY)


def check_preflight(headers: Headers) -> None:
    """Refuse an OPTIONS request that is not a preflight. Raises S3Error BadRequest."""
    if not headers.get(ORIGIN):
        raise S3Error("BadRequest", "Insufficient information. Origin request header needed.")
    method = headers.get(REQUEST_METHOD)
    if method not in METHODS:
        raise S3Error("BadRequest", f"Invalid Access-Control-Request-Method: {method[:20] or None}")


def preflight(rules: Rules, headers: Headers) -> S3Response:
    """Answer a preflight that ``check_preflight`` accepted.

    Raises S3Error AccessForbidden, with one text for a bucket without rules, one whose rules do not
    allow the request, and one that does not exist.
    """
    origin, method = headers.get(ORIGIN), headers.get(REQUEST_METHOD)
    text = ",".join(headers.get_all(REQUEST_HEADERS))
    wanted = [name.strip().lower() for name in text.split(",") if name.strip()]
    rule = None
    if all(_NAME.fullmatch(name) for name in wanted):
        rule = first_match(rules, origin, method, wanted)
    if rule is None:
        raise S3Error("AccessForbidden", extra={"Method": method}, headers=dict([VARY]))
    found = [*_allowed(rule, origin), VARY]
    if wanted:
        found.append(("access-control-allow-headers", ", ".join(wanted)))
    return S3Response(headers=found)


def _allowed(rule: CorsRule, origin: str) -> list[tuple[str, str]]:
    allowed = rule.allowed_origin(origin)
    found = [
        ("access-control-allow-origin", allowed),
        ("access-control-allow-methods", ", ".join(rule.methods)),
    ]
    if allowed != ANY and rule.allows_credentials:
        found.append(("access-control-allow-credentials", "true"))
    if rule.exposed:
        found.append(("access-control-expose-headers", ", ".join(rule.exposed)))
    if rule.max_age_s is not None:
        found.append(("access-control-max-age", str(rule.max_age_s)))
    return found
