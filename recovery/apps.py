"""The app configuration."""

from django.apps import AppConfig


class RecoveryConfig(AppConfig):
    """Account recovery that does not bypass the second factor."""

    name = "recovery"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Add staff's actions on users."""
        # Django wants models loaded first.
        from accounts.admin import USER_ACTIONS  # noqa: PLC0415 - as above
        from recovery import staff_actions  # noqa: PLC0415 - as above

        USER_ACTIONS.extend(staff_actions.USER_ACTIONS)
