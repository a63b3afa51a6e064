"""System checks of the gateway's settings."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

# The part of a process's threads that running and waiting SQL requests may occupy.
SQL_SHARE: Final = Fraction(2, 3)


@register(deploy=True)
def check_cluster(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Require a cluster for tenants' databases."""
    if settings.SQL.cluster_url:
        return []
    return [Error("ZSQL_CLUSTER_URL is not set: POST /v1/sql has no server.", id="sqlgateway.E001")]


@register("settings")
def check_limits(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Check limits that depend on each other."""
    found: list[CheckMessage] = []
    limits = settings.SQL
    if limits.running_per_organization >= limits.running:
        found.append(
            Error(
                "ZSQL_RUNNING_PER_ORGANIZATION must be below ZSQL_RUNNING: one organization may "
                "keep all others waiting.",
                id="sqlgateway.E002",
            )
        )
    if limits.transaction_idle_s > limits.transaction_life_s:
        found.append(
            Error("ZSQL_TRANSACTION_IDLE_S is above ZSQL_TRANSACTION_LIFE_S.", id="sqlgateway.E006")
        )
    if limits.running + limits.queue > settings.WEB_THREADS * SQL_SHARE:
        found.append(
            Error(
                "ZSQL_RUNNING and ZSQL_QUEUE are together above two thirds of ZWEB_THREADS: SQL "
                "may take the threads that sign-in and health checks need.",
                id="sqlgateway.E005",
            )
        )
    return found


@register("settings")
def check_memory(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Check that one organization's large results leave memory for others'."""
    limits = settings.SQL
    least = limits.request_bytes * (limits.running_per_organization + 1)
    if limits.results_bytes >= least:
        return []
    return [
        Error(
            f"ZSQL_RESULTS_BYTES must be at least {least}, which is what one more than "
            "ZSQL_RUNNING_PER_ORGANIZATION requests may hold: one organization may hold all of it.",
            id="sqlgateway.E007",
        )
    ]
