"""The app configuration."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users, their sessions and API keys."""

    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the deployment checks, and the mail about a webhook that was disabled."""
        # Django wants models loaded first.
        from accounts import checks  # noqa: F401, PLC0415 - as above
        from accounts.organization_admins import notify_of_disabled_webhook  # noqa: PLC0415 - as above
        from outbox.webhooks.delivery_queue import WHEN_DISABLED  # noqa: PLC0415 - as above

        WHEN_DISABLED.append(notify_of_disabled_webhook)
