"""The app configuration."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The audit trail."""

    name = "audit"
    default_auto_field = "django.db.models.BigAutoField"
