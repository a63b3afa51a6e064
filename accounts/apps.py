"""The app configuration."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users, sessions, tokens, audit trail."""

    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the deployment checks."""
        # Django wants models loaded first.
        from accounts import checks  # noqa: F401, PLC0415 - as above
        from accounts.oauth import checks as oauth  # noqa: F401, PLC0415 - as above
