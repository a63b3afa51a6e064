"""The app configuration."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """What every app uses; its one table counts attempts."""

    name = "common"
    default_auto_field = "django.db.models.BigAutoField"
