"""Django's view of this application."""

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    """Getting back in without a way around the second factor."""

    name = "recovery"
    default_auto_field = "django.db.models.BigAutoField"
