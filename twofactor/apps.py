"""The app configuration."""

from django.apps import AppConfig


class TwoFactorConfig(AppConfig):
    """The second factor."""

    name = "twofactor"
    default_auto_field = "django.db.models.BigAutoField"
