"""The app configuration."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """Mail, text messages and webhooks."""

    name = "outbox"
    default_auto_field = "django.db.models.BigAutoField"
