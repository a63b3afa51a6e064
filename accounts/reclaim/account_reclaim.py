"""Account reclaim: an account with an unverified address goes to the person who verifies it.

An attacker may have signed up with the address in advance (A. Sudhodanan, A. Paverd: Pre-hijacked
accounts, USENIX Security 2022). Everything that gives the attacker access is removed at that
moment. The organization's data stays.
"""

from datetime import datetime

from accounts import account_lifecycle
from accounts.api_keys import api_keys
from accounts.audit import audit
from accounts.audit_tags import AccountTag
from accounts.invitations import invitations
from accounts.models import MailboxProof, User
from accounts.organization import deletion
from accounts.sessions import sessions
from accounts.signin import known_devices
from accounts.webhooks import endpoints
from platform_site.lib.principals import PlatformRequest


def reset_unverified_account(
    user: User, *, request: PlatformRequest, now: datetime, keep_factors: bool = False
) -> None:
    """Remove the creator's access to an unverified account, and mark its address as verified.

    This ends password, sessions, trusted devices, pending sign-ins, linked identities, answers to
    security questions, a change of address, and second factors; also the account's open
    invitations, API keys, access keys of the object API, webhooks, claims of domains, payout method
    and requested deletion of the organization. Call inside a transaction, with the user's row
    locked.
    keep_factors: True if the person who verified the address has just used these factors.
    Raises ValueError if the address was verified before: the account belongs to its owner.
    """
    if user.email_verified_at is not None:
        raise ValueError("The account was proven before.")
    user.set_unusable_password()
    user.email_verified_at = now
    user.save(update_fields=["password", "email_verified_at"])
    ended = sessions.end_all_of_user(user.pk, reason="stripped", now=now)
    known_devices.delete_all(user)
    MailboxProof.unscoped.filter(pk=user.pk).delete()  # unscoped: the user's own
    revoked = invitations.revoke_created_by(user, now=now)
    keys = api_keys.revoke_created_by(user, reason="stripped", now=now)
    webhooks = endpoints.remove_created_by(user)
    is_cancelled = deletion.cancel_of(user)
    account_lifecycle.run_hooks("trust_ended", user.pk)
    account_lifecycle.run_hooks("account_reclaimed", user.pk)
    if not keep_factors:
        account_lifecycle.run_hooks("factors_reset", user.pk)
    audit.record_user(
        request,
        AccountTag.USER_RESET_UNVERIFIED,
        user,
        sessions=ended,
        invitations=revoked,
        api_keys=keys,
        webhooks=webhooks,
        deletion_cancelled=is_cancelled,
        factors=not keep_factors,
    )
