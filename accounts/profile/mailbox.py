"""The mailbox of an account: its state, and its verification by a code.

A code is accepted only in a session of its user: the owner of an address that someone else signed
up with must not verify it for them by clicking a link.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F

from accounts import account_lifecycle, mailed_secrets, notices
from accounts.audit_tags import AccountTag
from accounts.errors import (
    EmailChangeGone,
    EmailCodeGone,
    EmailCodeRejected,
    EmailTaken,
    EmailVerified,
    MailedTooOften,
)
from accounts.models import MailboxProof, User
from accounts.reclaim import address_release
from accounts.signin import credentials, mailbox_proofs
from accounts.signin.mailbox_proofs import AddressChange
from audit import trail
from common.principals import PlatformRequest
from common.scoping import unscoped

COOL_DOWN: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a mailbox. pending: the pending verification, of this address or a new one."""

    user: User
    pending: MailboxProof | None

    @property
    def email(self) -> str | None:
        """The address; None for an account that has to add one."""
        return self.user.email or None

    @property
    def email_verified(self) -> bool:
        """True if the address was verified."""
        return self.user.email_verified_at is not None

    @property
    def pending_email(self) -> str | None:
        """The address to change to."""
        return self.pending.email if self.pending and self.pending.fingerprint else None

    @property
    def code_expires_at(self) -> int | None:
        """When the last mailed code expires, in Unix seconds."""
        return int(self.pending.expires_at.timestamp()) if self.pending else None


def state_of(user_id: UUID, *, now: datetime) -> State:
    """Return the state of a user's mailbox."""
    user = User.objects.get(pk=user_id)
    return State(user, mailbox_proofs.current(user, now=now))


def owner_of(email: str, *, other_than: User) -> User | None:
    """Return the user of another account that the address stays with, whoever reads its mails."""
    found = credentials.find(email)
    if found is None or found.pk == other_than.pk or address_release.is_releasable(found):
        return None
    return found


def resend(user_id: UUID, *, now: datetime) -> State:
    """Mail a new code to the address to verify; the previous code becomes invalid.

    Raises EmailVerified (409) if there is none, EmailChangeGone (410) if the account has no address
    and no change is pending, MailedTooOften (429) within a minute of the last mail.
    """
    waiting = state_of(user_id, now=now)
    if waiting.pending is None and not waiting.user.email:
        raise EmailChangeGone
    email = waiting.pending.email if waiting.pending else waiting.user.email
    is_own = email == waiting.user.email
    mailbox_proofs.check_rate_limit(user_id, email, is_own=is_own, now=now)
    with transaction.atomic():
        user = User.locked(user_id)
        proof = mailbox_proofs.current(user, now=now)
        if proof is None and user.email_verified_at is not None:
            raise EmailVerified
        if proof is None and not user.email:
            raise EmailChangeGone
        if proof is not None and now < proof.sent_at + COOL_DOWN:
            left = proof.sent_at + COOL_DOWN - now
            raise MailedTooOften(retry_after_s=int(left.total_seconds()) + 1)
        change = None
        if proof is not None and proof.fingerprint:
            change = AddressChange(proof.cancel, owner=owner_of(proof.email, other_than=user))
        made = mailbox_proofs.put(
            user, proof.email if proof else user.email, change=change, now=now
        )
    return State(user, made)


def verify(request: PlatformRequest, user_id: UUID, code: str, *, now: datetime) -> State:
    """Verify the account's address, or change it to the new one, with a mailed code.

    Another account that has not verified the address loses it.
    Raises EmailCodeRejected (400: wrong, counted; or not a code), EmailCodeGone (410), EmailTaken
    (409) if another account has verified the address by now.
    """
    given = mailed_secrets.canonical_code(code)
    if not given:
        message = "The code of the mail, as ABCD-EFGH."
        raise EmailCodeRejected.for_field("code", message, code="malformed")
    try:
        with transaction.atomic():
            state = _apply_code(request, _lock(user_id), given, now)
    except IntegrityError as exc:
        raise EmailTaken from exc
    # Raised outside the transaction, so that the attempt stays counted.
    if state is None:
        message = "This is not the code that was mailed last."
        raise EmailCodeRejected.for_field("code", message, code="wrong")
    return state


@unscoped("an address has one account among all organizations")
def _lock(user_id: UUID) -> User:
    """Lock a user together with the account that may lose the address to it.

    In one order: two accounts may change to each other's address at the same time.
    """
    keys = {user_id}
    mine = MailboxProof.objects.filter(pk=user_id)
    for email in mine.values_list("email", flat=True):
        holder = credentials.find(email)
        keys |= {holder.pk} if holder is not None else set()
    rows = User.objects.select_for_update(no_key=True)
    locked: dict[UUID, User] = {user.pk: user for user in rows.filter(pk__in=keys).order_by("pk")}
    return locked[user_id]


def note_proof(request: PlatformRequest, user_id: UUID, email: str, *, now: datetime) -> None:
    """Verify the caller's own address with a secret that was mailed to it for another purpose."""
    mine = User.objects.filter(pk=user_id, email=email)
    if mine.filter(email_verified_at=None).update(email_verified_at=now):
        trail.record_request(request, AccountTag.EMAIL_VERIFY, email=email)


def _apply_code(request: PlatformRequest, user: User, code: str, now: datetime) -> State | None:
    proof = mailbox_proofs.current(user, now=now)
    if proof is None:
        raise EmailCodeGone
    if not mailed_secrets.is_same(proof.code, mailbox_proofs.code_digest(user, proof.email, code)):
        rows = MailboxProof.objects.filter(pk=user.pk)
        rows.update(attempts_left=F("attempts_left") - 1)
        return None
    former, is_moved = user.email, False
    if proof.fingerprint:
        is_moved = address_release.take(proof.email, taker=user, now=now)
    user.email, user.email_verified_at, user.address_released_at = proof.email, now, None
    user.save(update_fields=["email", "email_verified_at", "address_released_at"])
    if proof.fingerprint:
        account_lifecycle.run_hooks("address_changed", user.pk)
        notices.notify(user, "email_changed", to=former)
        if is_moved:
            address_release.notify(user)
        trail.record_request(request, AccountTag.EMAIL_UPDATE, before=former, after=user.email)
    else:
        trail.record_request(request, AccountTag.EMAIL_VERIFY, email=user.email)
    proof.delete()
    return State(user, None)
