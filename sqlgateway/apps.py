"""Django's configuration of this application."""

from django.apps import AppConfig


class SqlGatewayConfig(AppConfig):
    """SQL over HTTP, with a database for each environment."""

    name = "sqlgateway"
    verbose_name = "SQL gateway"

    def ready(self) -> None:
        """Register the system checks, and the databases of environments."""
        # Django wants models loaded first.
        from environments import tenant_data  # noqa: PLC0415 - as above
        from sqlgateway import checks  # noqa: F401, PLC0415 - as above
        from sqlgateway.databases import provisioning, quotas  # noqa: PLC0415 - as above
        from sqlgateway.tenant_data import SqlData  # noqa: PLC0415 - as above

        tenant_data.ALL.append(SqlData())
        tenant_data.DATABASE_STATE.provide(provisioning.state_of)
        tenant_data.DATABASE_ERROR.provide(provisioning.error_of)
        tenant_data.DATABASE_PROGRESS.provide(provisioning.progress_of)
        tenant_data.ENVIRONMENT_LIMIT.provide(quotas.environment_limit)
