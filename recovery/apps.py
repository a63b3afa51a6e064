"""The app configuration."""

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    """Account recovery that does not bypass the second factor."""

    name = "recovery"
    default_auto_field = "django.db.models.BigAutoField"
