"""System checks of the gateway's settings."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register


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
    if settings.SQL.running_per_environment > settings.SQL.running:
        found.append(
            Error(
                "ZSQL_RUNNING_PER_ENVIRONMENT is above ZSQL_RUNNING: one environment may keep "
                "all others waiting.",
                id="sqlgateway.E002",
            )
        )
    if settings.SQL.connections < settings.SQL.running * 2:
        found.append(
            Error(
                "ZSQL_CONNECTIONS must be at least twice ZSQL_RUNNING: a cut result takes a "
                "second connection.",
                id="sqlgateway.E003",
            )
        )
    if settings.SQL.buffer_bytes < settings.SQL.max_bytes:
        found.append(Error("ZSQL_BUFFER_BYTES is below ZSQL_MAX_BYTES.", id="sqlgateway.E004"))
    return found
