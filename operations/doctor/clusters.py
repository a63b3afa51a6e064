"""Checks of the tenants' database servers: reachability, hardening, capacity."""

from collections.abc import Iterator
from typing import Any, Final

from operations.doctor.findings import Finding, Level
from sqlgateway.clusters import servers
from sqlgateway.errors import EngineUnavailable
from sqlgateway.hardening.cluster import complaints
from sqlgateway.models import Cluster

SUBJECT: Final = "clusters"
# Share of the capacity; add a cluster before the last one is full.
NEARLY_FULL: Final = 0.9


def check_clusters() -> Iterator[Finding]:
    """Check each server."""
    try:
        rows = list(servers.with_counts().exclude(state=Cluster.State.CLOSED).order_by("id"))
    except EngineUnavailable:
        advice = "Set ZSQL_CLUSTER_URL, or run `manage.py addcluster`."
        yield Finding(SUBJECT, Level.FAILED, "No server for tenants' databases is set.", advice)
        return
    for row in rows:
        yield from _check(row)
    is_open = [row for row in rows if row.state == Cluster.State.OPEN]
    if all(row.placed >= NEARLY_FULL * row.capacity for row in is_open):
        message = "Every open server has used nine tenths of its capacity or more."
        yield Finding(SUBJECT, Level.WARNING, message, "Run `manage.py addcluster`.")


def _check(cluster: Any) -> Iterator[Finding]:
    try:
        with servers.administer(servers.address_of(cluster)) as server:
            found = list(complaints(server))
    except EngineUnavailable as exc:
        message = f"{cluster.name} does not answer: the requests of its tenants get 503."
        if exc.reason:
            message = f"{cluster.name}: {exc.reason} The requests of its tenants get 503."
        advice = "Start it, or check its address, role and password (ZSQL_CLUSTER_URL)."
        yield Finding(SUBJECT, Level.FAILED, message, advice)
        return
    for sentence in found:
        advice = "See docs/production.md, and confirm with `manage.py checkisolation`."
        yield Finding(SUBJECT, Level.WARNING, f"{cluster.name}: {sentence}", advice)
    if not found:
        major, minor = divmod(cluster.server_version, 10_000)
        message = (
            f"{cluster.name}: PostgreSQL {major}.{minor} answers and is hardened, "
            f"{cluster.placed} of {cluster.capacity} databases."
        )
        yield Finding(SUBJECT, Level.OK, message)
