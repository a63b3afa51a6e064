"""The app configurations of the project and of the admin site."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class PlatformConfig(AppConfig):
    """The models of the dashboard and its tasks."""

    name = "platform_site"


class AdminConfig(DjangoAdminConfig):
    """Django's admin with the platform's admin site."""

    default_site = "platform_site.staff.site.PlatformAdminSite"
