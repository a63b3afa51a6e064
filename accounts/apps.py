"""The app configuration."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users, their sessions and API keys."""

    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the deployment checks, and take part in what other apps do."""
        # Django wants models loaded first.
        from accounts import checks  # noqa: F401, PLC0415 - as above
        from accounts.account_lifecycle import HOOKS  # noqa: PLC0415 - as above
        from accounts.organization_admins import notify_of_disabled_webhook  # noqa: PLC0415 - as above
        from accounts.tenant_data import AccountsData  # noqa: PLC0415 - as above
        from accounts.terminal import terminal_sign_ins  # noqa: PLC0415 - as above
        from environments import tenant_data  # noqa: PLC0415 - as above
        from outbox.webhooks.delivery_queue import WHEN_DISABLED  # noqa: PLC0415 - as above

        HOOKS["trust_ended"].append(terminal_sign_ins.on_trust_ended)
        tenant_data.ALL.append(AccountsData())
        WHEN_DISABLED.append(notify_of_disabled_webhook)
