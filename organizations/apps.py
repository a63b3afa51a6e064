"""The app configuration."""

from django.apps import AppConfig


class OrganizationsConfig(AppConfig):
    """Members, invitations, exports and deletion of an organization."""

    name = "organizations"
    default_auto_field = "django.db.models.BigAutoField"
