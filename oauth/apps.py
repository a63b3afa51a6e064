"""The app configuration."""

from django.apps import AppConfig


class OAuthConfig(AppConfig):
    """Sign-in with other providers, domains, memberships."""

    name = "oauth"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the deployment checks, and add the contents of organizations."""
        # Django wants models loaded first.
        from environments import tenant_data  # noqa: PLC0415 - as above
        from oauth import checks, identities  # noqa: F401, PLC0415 - as above
        from oauth.tenant_data import OAuthData  # noqa: PLC0415 - as above
        from organizations import removals  # noqa: PLC0415 - as above

        tenant_data.ALL.append(OAuthData())
        removals.SOURCES.append(identities.texts_of)
