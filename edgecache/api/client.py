"""The platform's only client of the brain's internal API.

Calls are synchronous, outside transactions and limited in time. If the brain does not answer,
CacheUnavailable (503) is raised immediately for a while, so that no other part of the platform
waits for it.
"""

import math
import os
import threading
from collections.abc import Callable, Mapping
from http.cookiejar import DefaultCookiePolicy
from time import monotonic
from typing import Any, Final

import requests
import structlog
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3.exceptions import MaxRetryError, ProtocolError
from urllib3.util import Retry

from common import tracing
from common.errors import ChangedSinceRead, FieldError, InvalidRequest, NotFound, PlatformError
from common.machine.reasons import reason
from common.principals import Principal, Scope
from edgecache.api import errors

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT_S: Final = 2
POOL: Final = 16
SUCCESS: Final = range(200, 300)
# Of connecting alone, which sends nothing: several brains may be behind one name.
RETRIES: Final = Retry(
    total=1, connect=1, read=False, status=0, other=0, respect_retry_after_header=False
)
# What changes something is sent once: the brain may have acted, and a second DELETE would be
# answered 404.
SAFE: Final = frozenset({"GET"})
UNKNOWN: Final = (
    "The answer was lost: whether the change was made is unknown. Check before you send it again."
)

FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 4.0
# The brain's refusals use the codes of ``errors``, but for those at the end.
ERRORS: Final[Mapping[str, type[PlatformError]]] = {
    error.code: error
    for error in vars(errors).values()
    if getattr(error, "__module__", "") == errors.__name__
} | {
    "not_possible": errors.CacheLimitReached,
    "bucket_changed": ChangedSinceRead,
    "origin_options_changed": ChangedSinceRead,
    **dict.fromkeys(
        ("origin_denied", "origin_forbidden", "origin_timeout", "origin_changed"),
        errors.OriginFailed,
    ),
}

Row = dict[str, Any]


class CircuitBreaker:
    """Opens at the first failure; while it is open, one caller may try after each pause.

    The pause doubles from one to four seconds and starts again after a success.
    clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._failed_at = -math.inf
        self._pause_s = 0.0
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        """True if the last call failed."""
        return self._pause_s > 0

    def allows_call(self) -> bool:
        """True if this caller may try; while the breaker is open, one caller in each pause may."""
        with self._lock:
            if not self._pause_s:
                return True
            now = self.clock()
            if now < self._retry_at:
                return False
            self._retry_at = now + self._pause_s
            return True

    def succeeded(self) -> None:
        """Close the breaker."""
        with self._lock:
            self._pause_s = 0.0

    def failed(self, began: float = math.inf) -> None:
        """Open the breaker, or double its pause.

        began: the start of the call. Calls that were under way when another one failed are the same
        failure: the brain hangs once, however many wait for it.
        """
        with self._lock:
            if began < self._failed_at:
                return
            self._failed_at = self.clock()
            self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), MAX_PAUSE_S)
            self._retry_at = self._failed_at + self._pause_s

    def retry_after_s(self) -> int:
        """Return whole seconds until the next call is allowed, at least one."""
        return max(1, math.ceil(self._retry_at - self.clock()))


breaker: Final = CircuitBreaker()
# One session for each process: a connection must not be shared across a fork.
_sessions: dict[int, requests.Session] = {}


def is_enabled() -> bool:
    """True if the master switch (ZCACHE_ENABLED) is on."""
    return settings.CACHE.is_enabled


def call(
    method: str,
    path: str,
    *,
    disabled: Any = None,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
) -> Any:
    """Return the brain's JSON answer, None if it has no body.

    disabled: returned without a call while the master switch is off.
    Raises CacheUnavailable if the brain does not answer or cannot serve, InvalidRequest and the
    errors of ``edgecache.api.errors`` if it refuses.
    """
    if not is_enabled():
        return disabled
    if not breaker.allows_call():
        raise errors.CacheUnavailable(retry_after_s=breaker.retry_after_s())
    began = breaker.clock()
    try:
        response = _send_safely(method, path, query, body)
    except requests.RequestException as exc:
        if not breaker.is_open:
            log.warning("cache_brain_unreachable", error=reason(exc))
        # One cut connection made no caller wait, and another brain may answer; a safe call was cut
        # on two.
        if method in SAFE or not _is_cut(exc):
            breaker.failed(began)
        if method in SAFE or _is_unsent(exc):
            raise errors.CacheUnavailable(retry_after_s=breaker.retry_after_s()) from exc
        # Clients take Retry-After for "nothing was done", and repeat the call.
        unknown = errors.CacheUnavailable(UNKNOWN)
        unknown.retry_after_s = None
        raise unknown from exc
    breaker.succeeded()
    return _read(response)


def _send_safely(
    method: str, path: str, query: Mapping[str, Any] | None, body: Mapping[str, Any] | None
) -> requests.Response:
    """Send a call, a second time on a new connection if that is safe and the first one was cut."""
    try:
        return _send(method, path, query, body)
    except requests.RequestException as exc:
        if method not in SAFE or not _is_cut(exc):
            raise
    return _send(method, path, query, body)


def _is_cut(exc: requests.RequestException) -> bool:
    """True if the connection ended before the answer did."""
    return any(isinstance(reason, ProtocolError) for reason in exc.args)


def _is_unsent(exc: requests.RequestException) -> bool:
    """True if no connection was made."""
    return any(isinstance(reason, MaxRetryError) for reason in exc.args)


def _send(
    method: str, path: str, query: Mapping[str, Any] | None, body: Mapping[str, Any] | None
) -> requests.Response:
    with tracing.span("brain call", "client") as span:
        response = _session().request(
            method,
            settings.CACHE.brain_url + path,
            params=query,
            json=body,
            headers=tracing.headers(),
            timeout=(min(CONNECT_TIMEOUT_S, settings.CACHE.timeout_s), settings.CACHE.timeout_s),
            allow_redirects=False,
        )
        if span is not None:
            span.set_attribute("http.response.status_code", response.status_code)
    return response


def probe() -> bool:
    """True if the brain answers; logs it. Called when a process starts."""
    try:
        call("GET", "/health")
    except PlatformError:
        log.warning("cache_unavailable", brain_url=settings.CACHE.brain_url)
        return False
    log.info("cache_available" if is_enabled() else "cache_disabled")
    return True


def tenant(scope: Scope) -> dict[str, int]:
    """Return the fields that tell the brain in which environment a call acts."""
    return {"organization_id": scope.organization_id, "environment_pk": scope.environment_pk}


def creator(principal: Principal) -> dict[str, Any]:
    """Return the fields that name the creator of a new row of the brain."""
    user_id = principal.user_id
    return {
        "created_by": principal.audit_name,
        "creator_id": str(user_id) if user_id else None,
    }


def list_rows(scope: Scope, resource: str) -> list[Row]:
    """Return an environment's rows of a resource of the brain, such as ``access-keys``."""
    name = resource.replace("-", "_")
    rows: list[Row] = call("GET", f"/v1/{resource}", query=tenant(scope), disabled={name: []})[name]
    return rows


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
        answer = response.json()
    except ValueError:
        answer = None
    if response.status_code in SUCCESS and answer is not None:
        return answer
    raise _error_from(response.status_code, answer if isinstance(answer, dict) else {})


def _error_from(status: int, problem: Mapping[str, Any]) -> PlatformError:
    code = str(problem.get("code", ""))
    if code in ERRORS:
        return ERRORS[code](str(problem.get("detail", "")))
    if status == requests.codes.bad_request:
        rows = problem.get("errors") or ()
        fields = [FieldError(row["field"], row["code"], row["message"]) for row in rows]
        return InvalidRequest(str(problem.get("detail", "")), fields=fields)
    if status == requests.codes.not_found:
        return NotFound()
    # A wrong secret, a lost database or a fault of the brain: none of these is the caller's.
    log.warning("cache_brain_refused", status=status, problem=code)
    return errors.CacheUnavailable()
