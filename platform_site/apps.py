"""Django app configurations: management commands, the admin site."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class PlatformConfig(AppConfig):
    """Carries the commands ``up`` and ``bootstrap``."""

    name = "platform_site"


class AdminConfig(DjangoAdminConfig):
    """Django's admin on our own site."""

    default_site = "platform_site.staff.site.PlatformAdminSite"
