"""Pending verifications of mailboxes: their codes, what is stored, and when they end.

One at a time for each user: of the account's own address, or of a new one. Every writer locks the
user's row.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from accounts import mailed_secrets
from accounts.errors import MailedTooOften
from accounts.models import PROOF_ATTEMPTS, MailboxProof, User
from common import rate_limits
from outbox.messages import queue
from outbox.messages.templates import console_link

# Codes a day to one number or address.
SENDS_PER_RECEIVER: Final = 20
LIFE: Final = timedelta(hours=24)
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class AddressChange:
    """A change to a new address.

    cancel: the digest of the token in the notice. owner: who has an account with it already.
    """

    cancel: str
    owner: User | None


def check_rate_limit(user_id: UUID, email: str, *, is_own: bool, now: datetime) -> None:
    """Count one mail against the daily limits of its recipient and of the requesting user.

    is_own: it is the account's own address. Changes to it that others ask for are counted
    separately: they must not keep its owner from verifying it.
    Raises MailedTooOften (429).
    """
    receiver = f"own {email.casefold()}" if is_own else email.casefold()
    for subject in (receiver, f"user {user_id}"):
        limit = SENDS_PER_RECEIVER
        rate_limits.enforce(
            "mailbox code", subject, limit=limit, window=DAY, error=MailedTooOften, now=now
        )


def put(
    user: User, email: str, *, change: AddressChange | None = None, now: datetime
) -> MailboxProof:
    """Mail a code to an address; it replaces the user's previous pending verification.

    change: None for the account's own address. An address that has an account already gets a mail
    that says so, and no code is accepted for it.
    """
    code = mailed_secrets.new_code()
    proof: MailboxProof
    proof, _ = MailboxProof.objects.update_or_create(
        user=user,
        defaults={
            "organization_id": user.organization_id,
            "email": email,
            "code": code_digest(user, email, code),
            "cancel": change.cancel if change else "",
            "fingerprint": fingerprint(user) if change else "",
            "attempts_left": PROOF_ATTEMPTS,
            "sent_at": now,
            "expires_at": now + LIFE,
        },
    )
    if change is not None and change.owner is not None:
        # The mail prints the number of the recipient's organization, for recovery.
        to, link = change.owner, console_link("sign-in")
        _mail(proof, "email_change_conflict", {"link": link}, organization_id=to.organization_id)
    else:
        hours = int(LIFE.total_seconds() // 3600)
        link = console_link("account", code=code)
        context: dict[str, str | int] = {"code": code, "link": link, "hours": hours}
        _mail(proof, "email_verification", context, organization_id=proof.organization_id)
    return proof


def _mail(
    proof: MailboxProof, template: str, context: dict[str, str | int], *, organization_id: int
) -> None:
    queue.send_mail(
        proof.email,
        template,
        context,
        organization_id=organization_id,
        user_id=proof.pk,
        expires_at=proof.expires_at,
    )


def code_digest(user: User, email: str, code: str) -> str:
    """Return the digest of a code, bound to user and address."""
    return mailed_secrets.code_digest("mailbox", user.pk, email, code=code)


def cancel_digest(token: str) -> str:
    """Return the digest of the token in a notice."""
    return mailed_secrets.token_digest("email change", token)


def fingerprint(user: User) -> str:
    """Return a digest of password and address; if either changes, the pending change is invalid."""
    return mailed_secrets.code_digest("email change", user.pk, user.password, code=user.email)


def current(user: User, *, now: datetime) -> MailboxProof | None:
    """Return the user's pending verification, None without a valid one."""
    mine = MailboxProof.objects.filter(pk=user.pk)
    proof: MailboxProof | None = mine.first()
    if proof is None or not proof.is_open(now):
        return None
    if proof.fingerprint:
        is_same = mailed_secrets.is_same(proof.fingerprint, fingerprint(user))
        return proof if is_same else None
    is_due = user.email_verified_at is None and proof.email == user.email
    return proof if is_due else None


def delete_change(user: User) -> None:
    """Delete a pending change of address, which its fingerprint would invalidate anyway."""
    rows = MailboxProof.objects.filter(pk=user.pk)
    rows.exclude(fingerprint="").delete()


def delete_old(*, now: datetime) -> int:
    """Delete expired verifications; return their number."""
    old = MailboxProof.objects.filter(expires_at__lt=now)
    return old.delete()[0]
