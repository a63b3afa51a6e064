"""Django's view of this application."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users, sessions, tokens, audit trail."""

    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the deployment checks."""
        from accounts import checks  # noqa: F401, PLC0415 - Django wants models loaded first
