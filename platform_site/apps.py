"""The app configurations of the project and of the admin site."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class PlatformConfig(AppConfig):
    """The models of the dashboard and its tasks."""

    name = "platform_site"

    def ready(self) -> None:
        """Show organizations' figures of all apps in the admin."""
        # Django wants models loaded first.
        from environments.admin import ORGANIZATION_FACTS  # noqa: PLC0415 - as above
        from platform_site.staff import organization  # noqa: PLC0415 - as above

        ORGANIZATION_FACTS.provide(organization.facts)


class AdminConfig(DjangoAdminConfig):
    """Django's admin with the platform's admin site."""

    default_site = "platform_site.staff.site.PlatformAdminSite"
