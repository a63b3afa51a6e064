"""Django's configuration of this application."""

from django.apps import AppConfig


class SqlGatewayConfig(AppConfig):
    """SQL over HTTP, with a database for each environment."""

    name = "sqlgateway"
    verbose_name = "SQL gateway"

    def ready(self) -> None:
        """Register the system checks."""
        from sqlgateway import checks  # noqa: F401, PLC0415 - Django wants models loaded first
