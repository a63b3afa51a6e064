"""The application's configuration."""

from django.apps import AppConfig


class SqlGatewayConfig(AppConfig):
    """SQL over HTTP into a database per environment."""

    name = "sqlgateway"
    verbose_name = "SQL gateway"

    def ready(self) -> None:
        """Register the checks."""
        from sqlgateway import checks  # noqa: F401, PLC0415 - Django wants models loaded first
