"""A change of e-mail address: the new one is verified first; the present one can cancel."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from accounts import mailed_secrets, notices
from accounts.audit_tags import AccountTag
from accounts.errors import EmailChangeGone
from accounts.models import MailboxProof, User
from accounts.profile import mailbox
from accounts.profile.mailbox import State
from accounts.signin import mailbox_proofs
from accounts.signin.mailbox_proofs import AddressChange
from audit import trail
from common.emails import mask_email
from common.errors import InvalidRequest
from common.principals import PlatformRequest
from outbox.messages.templates import console_link


def begin(request: PlatformRequest, user_id: UUID, email: str, *, now: datetime) -> State:
    """Mail a code to the new address, and a notice with a token to cancel to the present one.

    If the new address has an account, its mail says so; the response is the same. email: in its
    stored form (signup.canonical). Raises InvalidRequest (400) for the present address,
    MailedTooOften (429).
    """
    mailbox_proofs.check_rate_limit(user_id, email, is_own=False, now=now)
    token = mailed_secrets.new_token()
    with transaction.atomic():
        user = User.locked(user_id)
        if email == user.email:
            message = "This is your address already."
            raise InvalidRequest.for_field("email", message, code="unchanged")
        owner = mailbox.owner_of(email, other_than=user)
        change = AddressChange(mailbox_proofs.cancel_digest(token), owner)
        proof = mailbox_proofs.put(user, email, change=change, now=now)
        notices.notify(
            user,
            "email_change_started",
            new=mask_email(email),
            cancel_link=console_link("email-change/cancel", token=token),
        )
        trail.record_request(request, AccountTag.EMAIL_BEGIN_CHANGE, to=email)
    return State(user, proof)


def give_up(request: PlatformRequest, user_id: UUID, *, now: datetime) -> None:
    """Cancel the change in the user's session.

    Raises EmailChangeGone (410) if no change is pending.
    """
    with transaction.atomic():
        user = User.locked(user_id)
        proof = mailbox_proofs.current(user, now=now)
        if proof is None or not proof.fingerprint:
            raise EmailChangeGone
        proof.delete()
        trail.record_request(request, AccountTag.EMAIL_CANCEL_CHANGE)


def cancel(request: PlatformRequest, token: str, *, now: datetime) -> None:
    """Cancel a change with the token that was mailed to the present address, without a session.

    Raises EmailChangeGone (410) if it is unknown, complete, cancelled or expired.
    """
    digest = mailbox_proofs.cancel_digest(token)
    with transaction.atomic():
        rows = MailboxProof.objects.filter(cancel=digest)
        user_id = rows.values_list("pk", flat=True).first()
        if user_id is None:
            raise EmailChangeGone
        user = User.locked(user_id)
        proof = mailbox_proofs.current(user, now=now)
        if proof is None or proof.cancel != digest:
            raise EmailChangeGone
        proof.delete()
        trail.record_user(request, AccountTag.EMAIL_CANCEL_CHANGE, user)
