"""The app configuration."""

from django.apps import AppConfig


class TwoFactorConfig(AppConfig):
    """The second factor."""

    name = "twofactor"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Take part in sign-ins, in changes of a user, and in requests that need a recent proof."""
        # Django wants models loaded first.
        from accounts import middleware  # noqa: PLC0415 - as above
        from accounts.account_lifecycle import HOOKS  # noqa: PLC0415 - as above
        from accounts.signin import signin  # noqa: PLC0415 - as above
        from common import permissions  # noqa: PLC0415 - as above
        from oauth import sign_in_methods  # noqa: PLC0415 - as above
        from twofactor import account_hooks  # noqa: PLC0415 - as above
        from twofactor.challenges import step_up  # noqa: PLC0415 - as above
        from twofactor.sign_in import pending, second_factor_stage  # noqa: PLC0415 - as above
        from twofactor.trusted_devices import devices  # noqa: PLC0415 - as above
        from twofactor.webauthn import passkeys  # noqa: PLC0415 - as above

        signin.STAGES.append(second_factor_stage.second_factor)
        signin.TRUSTED_DEVICE_CHECK.provide(devices.is_from_trusted_device)
        middleware.FURTHER_AUTHENTICATORS.append(pending.authenticate)
        permissions.FRESH_PROOF_GUARD.provide(step_up.require_recent_proof)
        sign_in_methods.FURTHER_METHODS.append(passkeys.can_sign_in)
        HOOKS["trust_ended"].append(account_hooks.on_trust_ended)
        HOOKS["user_removed"].append(account_hooks.on_user_removed)
