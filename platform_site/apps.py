"""The app configurations of the project and of the admin site."""

import sys

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class PlatformConfig(AppConfig):
    """The models of the dashboard and its tasks."""

    name = "platform_site"

    def ready(self) -> None:
        """Begin a task worker's log, and show organizations' figures of all apps in the admin."""
        # Django wants models loaded first.
        from environments.admin import ORGANIZATION_FACTS  # noqa: PLC0415 - as above
        from platform_site import startup  # noqa: PLC0415 - as above
        from platform_site.staff import organization  # noqa: PLC0415 - as above

        # Before anything else is written to it.
        if sys.argv[1:3] == ["procrastinate", "worker"]:
            startup.log_start("task worker")
        ORGANIZATION_FACTS.provide(organization.facts)


class AdminConfig(DjangoAdminConfig):
    """Django's admin with the platform's admin site."""

    default_site = "platform_site.staff.site.PlatformAdminSite"
