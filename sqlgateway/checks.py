"""What must be set before the gateway serves tenants in production."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register

from sqlgateway.conf import cluster_url, limit


@register(deploy=True)
def check_cluster(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Ask for a tenants' cluster."""
    if cluster_url():
        return []
    return [Error("ZSQL_CLUSTER_URL is not set: POST /v1/sql has no server.", id="sqlgateway.E001")]


@register("settings")
def check_limits(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Hold limits against each other that make no sense apart."""
    found: list[CheckMessage] = []
    if limit("SQL_RUNNING_PER_ENVIRONMENT") > limit("SQL_RUNNING"):
        found.append(
            Error(
                "ZSQL_RUNNING_PER_ENVIRONMENT is above ZSQL_RUNNING: one environment may keep "
                "all others waiting.",
                id="sqlgateway.E002",
            )
        )
    if limit("SQL_CONNECTIONS") < limit("SQL_RUNNING") * 2:
        found.append(
            Error(
                "ZSQL_CONNECTIONS must be at least twice ZSQL_RUNNING: a cut result takes a "
                "second connection.",
                id="sqlgateway.E003",
            )
        )
    if limit("SQL_BUFFER_BYTES") < limit("SQL_MAX_BYTES"):
        found.append(Error("ZSQL_BUFFER_BYTES is below ZSQL_MAX_BYTES.", id="sqlgateway.E004"))
    return found
