"""The app configuration."""

from django.apps import AppConfig


class OrganizationsConfig(AppConfig):
    """Members, invitations, exports and deletion of an organization."""

    name = "organizations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Add the contents of organizations, and what follows a change of address."""
        # Django wants models loaded first.
        from accounts.account_lifecycle import HOOKS  # noqa: PLC0415 - as above
        from environments import tenant_data  # noqa: PLC0415 - as above
        from organizations import invitations  # noqa: PLC0415 - as above
        from organizations.tenant_data import OrganizationData  # noqa: PLC0415 - as above

        tenant_data.ALL.append(OrganizationData())
        HOOKS["address_changed"].append(invitations.end_for_member)
