"""The app configuration."""

from django.apps import AppConfig


class OrganizationsConfig(AppConfig):
    """Members, invitations, exports and deletion of an organization."""

    name = "organizations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Add the contents of organizations."""
        # Django wants models loaded first.
        from environments import tenant_data  # noqa: PLC0415 - as above
        from organizations.tenant_data import OrganizationData  # noqa: PLC0415 - as above

        tenant_data.ALL.append(OrganizationData())
