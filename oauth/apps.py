"""The app configuration."""

from django.apps import AppConfig


class OAuthConfig(AppConfig):
    """Sign-in with other providers, domains, memberships."""

    name = "oauth"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the deployment checks."""
        # Django wants models loaded first.
        from oauth import checks  # noqa: F401, PLC0415 - as above
