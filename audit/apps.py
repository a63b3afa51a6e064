"""The app configuration."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The audit trail."""

    name = "audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Record denied requests."""
        # Django wants models loaded first.
        from audit import trail  # noqa: PLC0415 - as above
        from common import permissions  # noqa: PLC0415 - as above

        permissions.DENIAL_RECORDER.provide(trail.record_denial)
