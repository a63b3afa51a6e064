"""The one place of the platform that speaks to the brain: its internal API over HTTP.

Calls are synchronous, outside of transactions, with a time limit; a brain that is gone is a
CacheUnavailable (503) at once, and nothing else of the platform waits for it.
"""

import os
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final

import requests
import structlog
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from edgecache.api import errors
from edgecache.api.breaker import Breaker
from platform_site.lib.errors import FieldError, InvalidRequest, NotFound, PlatformError

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT_S: Final = 2
POOL: Final = 16
SUCCESS: Final = range(200, 300)
# A connection that the brain closed while it was idle shows at its next use.
RETRIES: Final = Retry(total=1, backoff_factor=0, allowed_methods=["GET", "DELETE"])
# What the brain refuses with: its codes are the platform's, but for one that says less.
REFUSALS: Final[Mapping[str, type[PlatformError]]] = {
    refusal.code: refusal
    for refusal in (
        errors.NodeNotFound,
        errors.NodeEndpointTaken,
        errors.BucketNotFound,
        errors.BucketTaken,
        errors.BucketNotEmpty,
        errors.HostNotFound,
        errors.HostTaken,
        errors.AccessKeyNotFound,
        errors.OriginNotFound,
        errors.OriginTaken,
        errors.OriginInUse,
    )
} | {"not_possible": errors.CacheLimitReached}

breaker: Final = Breaker()
# One session a process: a connection must not be shared over a fork.
_sessions: dict[int, requests.Session] = {}


def is_enabled() -> bool:
    """Whether the master switch (ZCACHE_ENABLED) is on."""
    return settings.CACHE.is_enabled


def call(
    method: str,
    path: str,
    *,
    disabled: Any = None,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
) -> Any:
    """Give the brain's JSON answer, None where it has no body.

    disabled: what is answered, without any call, while the master switch is off.
    Raises CacheUnavailable when the brain does not answer or cannot serve; InvalidRequest and the
    refusals of ``edgecache.api.errors`` for what it refuses.
    """
    if not is_enabled():
        return disabled
    if not breaker.admits():
        raise errors.CacheUnavailable(retry_after_s=breaker.retry_after_s())
    try:
        response = _session().request(
            method,
            settings.CACHE.brain_url + path,
            params=query,
            json=body,
            timeout=(min(CONNECT_TIMEOUT_S, settings.CACHE.timeout_s), settings.CACHE.timeout_s),
            allow_redirects=False,
        )
    except requests.RequestException as exc:
        if not breaker.is_open:
            log.warning("cache_brain_unreachable", error=type(exc).__name__)
        breaker.failed()
        raise errors.CacheUnavailable(retry_after_s=breaker.retry_after_s()) from exc
    breaker.succeeded()
    return _read(response)


def probe() -> bool:
    """Say whether the brain is there, and log it: for the start of a process."""
    try:
        call("GET", "/health")
    except PlatformError:
        log.warning("cache_unavailable", brain_url=settings.CACHE.brain_url)
        return False
    log.info("cache_available" if is_enabled() else "cache_disabled")
    return True


def _session() -> requests.Session:
    session = _sessions.get(os.getpid())
    if session is None:
        session = requests.Session()
        session.trust_env = False
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        session.headers["Authorization"] = f"Bearer {settings.CACHE.secret}"
        session.mount("http://", HTTPAdapter(pool_maxsize=POOL, max_retries=RETRIES))
        session.mount("https://", HTTPAdapter(pool_maxsize=POOL, max_retries=RETRIES))
        _sessions[os.getpid()] = session
    return session


def _read(response: requests.Response) -> Any:
    if response.status_code == requests.codes.no_content:
        return None
    try:
        said = response.json()
    except ValueError:
        said = None
    if response.status_code in SUCCESS and said is not None:
        return said
    raise _refusal(response.status_code, said if isinstance(said, dict) else {})


def _refusal(status: int, said: Mapping[str, Any]) -> PlatformError:
    code = str(said.get("code", ""))
    if code in REFUSALS:
        return REFUSALS[code](str(said.get("detail", "")))
    if status == requests.codes.bad_request:
        rows = said.get("errors") or ()
        fields = [FieldError(row["field"], row["code"], row["message"]) for row in rows]
        return InvalidRequest(str(said.get("detail", "")), fields=fields)
    if status == requests.codes.not_found:
        return NotFound()
    # Refused for its secret, its database gone, a fault of its own: none of it is the caller's.
    log.warning("cache_brain_refused", status=status, refusal=code)
    return errors.CacheUnavailable()
