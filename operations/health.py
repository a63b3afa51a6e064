"""``/healthz``, ``/readyz``, ``/metrics``: for load balancers and Prometheus."""

import hmac

import structlog
from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    InterfaceError,
    OperationalError,
    connections,
)
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from common import problems
from common.errors import NotFound, PlatformError
from common.machine.reasons import reason
from common.metrics import publishing
from common.metrics.connections import DATABASE
from common.metrics.exposition import exposition as all_metrics
from common.metrics.figures import Figures, GaugeGroup
from common.metrics.tasks import TASKS
from common.pending_migrations import pending_migrations
from common.version import VERSION
from common.web import server_end
from common.web.addresses import is_from_this_machine
from operations.backup.records import BACKUPS
from outbox.metrics import WEBHOOKS, Deliveries

log = structlog.get_logger(__name__)

# Migrations are not reverted while the process runs, so after success they are not checked again.
_migrated = False


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200 without any checks: the process is alive."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Return 200 if requests can be served, else 503 naming what is missing."""
    if server_end.has_begun():
        # On a connection that is kept alive; new ones are refused.
        return _unready({"server": "ending"})
    checks = {"database": "ok", "migrations": "ok", "queue": "ok"}
    try:
        checks |= _ask_anew()
    except Error as exc:
        log.warning("not_ready", error=reason(exc))
        connections[DEFAULT_DB_ALIAS].close()
        checks = dict.fromkeys(checks, "unavailable")
    is_ready = all(state == "ok" for state in checks.values())
    if settings.HAS_CACHE:
        # The platform serves requests without the cache too, so it stays ready.
        checks["cache"] = _ask_cache()
    if not is_ready:
        return _unready(checks)
    return JsonResponse({"status": "ok", "version": VERSION, "checks": checks})


def _unready(checks: dict[str, str]) -> HttpResponse:
    body = {"status": "unavailable", "version": VERSION, "checks": checks}
    return JsonResponse(body, status=503, headers={"Retry-After": "2"})


def _ask_anew() -> dict[str, str]:
    """Ask the database, on a new connection if this thread's one is of no use.

    It was lost, or it is to a server that is no longer the one that takes writes.
    """
    is_old = connections[DEFAULT_DB_ALIAS].connection is not None
    try:
        found = _ask_database()
        if found["database"] == "ok" or not is_old:
            return found
    except (OperationalError, InterfaceError):
        if not is_old:
            raise
    connections[DEFAULT_DB_ALIAS].close()
    return _ask_database()


def _ask_database() -> dict[str, str]:
    global _migrated  # noqa: PLW0603 - one fact a process learns once
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_regclass('procrastinate_jobs') IS NOT NULL,"
            " current_setting('transaction_read_only')::bool"
        )
        has_queue, is_read_only = cursor.fetchone() or (False, False)
    # Then no pool keeps it.
    connection.has_refused = is_read_only  # type: ignore[attr-defined]  # the backend's
    if not _migrated:
        _migrated = not pending_migrations(DEFAULT_DB_ALIAS)
    return {
        "database": "read_only" if is_read_only else "ok",
        "queue": "ok" if has_queue else "missing",
        "migrations": "ok" if _migrated else "pending",
    }


def _ask_cache() -> str:
    if not settings.CACHE.is_enabled:
        return "disabled"
    from edgecache.api import client  # noqa: PLC0415 - only where the feature is installed

    try:
        client.call("GET", "/health")
    except PlatformError:
        return "unavailable"
    return "ok"


@require_safe
def exposition(request: HttpRequest) -> HttpResponse:
    """Return the metrics to loopback, or to the bearer of ZMETRICS_TOKEN; else 404."""
    if not _may_scrape(request):
        return problems.respond(request, NotFound())
    publishing.publish()
    figures = Figures(*_gauge_groups())
    return HttpResponse(all_metrics(Deliveries(), figures), content_type=CONTENT_TYPE_LATEST)


def _gauge_groups() -> list[GaugeGroup]:
    groups = [TASKS, DATABASE, BACKUPS, WEBHOOKS]
    if settings.HAS_CACHE:
        from billing.metrics import LEDGER  # noqa: PLC0415 - only with the feature

        groups.append(LEDGER)
    return groups


def _may_scrape(request: HttpRequest) -> bool:
    sent = request.headers.get("Authorization", "")
    if settings.METRICS_TOKEN:
        wanted = f"Bearer {settings.METRICS_TOKEN}"
        return hmac.compare_digest(sent.encode(), wanted.encode())
    return is_from_this_machine(request)
