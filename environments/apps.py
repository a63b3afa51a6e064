"""The app configuration."""

from django.apps import AppConfig


class EnvironmentsConfig(AppConfig):
    """Organizations and environments."""

    name = "environments"
    default_auto_field = "django.db.models.BigAutoField"
