"""Sign-up by a mailed link: the mailbox is verified first, then the account is created.

Anyone can sign up this way, including an owner whose address someone else has used without
verifying it. Requesting a link does not reveal if the address has an account: the response, the row
and the sending of a mail are the same, and only the mail differs.
"""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts import mailed_secrets, passwords
from accounts.audit_tags import AccountTag
from accounts.errors import EmailTaken, MailedTooOften, SignupLinkGone, TooManyAttempts
from accounts.models import SignupLink, User
from accounts.reclaim import address_release
from accounts.sessions.sessions import SessionTokens
from accounts.signin import credentials, signin, signup
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse
from audit import trail
from common import rate_limits
from common.principals import PlatformRequest
from common.web.addresses import client_address, subscriber_network
from environments import environments
from outbox.messages import queue
from outbox.messages.templates import console_link

# Links and invitations viewed or accepted, an hour.
TRIES_PER_ADDRESS: Final = 100
LIFE_HOURS: Final = 24
LIFE: Final = timedelta(hours=LIFE_HOURS)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
# Links to one recipient per day.
LINKS_PER_RECEIVER: Final = 50
# Links from one network to one recipient per day: enough for the owner, and an attacker must not
# use up the recipient's limit.
LINKS_PER_NETWORK: Final = 5


def request_link(request: PlatformRequest, email: str, *, now: datetime) -> datetime:
    """Mail a link to an address and return when it expires.

    The owner of a verified account gets a mail that says so instead.
    Raises TooManyAttempts (429) for the client's network, MailedTooOften (429) for the recipient.
    """
    email = signup.canonical(email)
    _check_rate_limit(request, email, now)
    token, expires_at = mailed_secrets.new_token(), now + LIFE
    with transaction.atomic():
        SignupLink.objects.create(digest=_digest(token), email=email, expires_at=expires_at)
        user = credentials.find(email)
        if user is not None and not address_release.is_releasable(user):
            _mail_conflict(user, expires_at)
        else:
            _mail_link(email, token, expires_at)
    return expires_at


def complete(
    request: PlatformRequest, token: str, password: str, *, organization: str, now: datetime
) -> SessionTokens | StageResponse:
    """Sign up with the token of a mail, once.

    An account that has not verified the address keeps everything except the address.
    organization: the name of the new one; '' derives it from the address.
    Raises SignupLinkGone (410), InvalidRequest (400) for a weak password, EmailTaken (409) if the
    account is verified by now, TooManyAttempts (429), HashingBusy (503).
    """
    _check_try_rate_limit(request, now)
    email = _open_link(token, now=now).email
    name = organization.strip()
    passwords.validate(password, context=(email, name, settings.SERVICE_NAME))
    # Before taking locks, because hashing is slow.
    encoded = passwords.hash_password(password)
    try:
        with transaction.atomic():
            _open_link(token, lock=True, now=now).delete()
            is_moved = address_release.take(email, now=now)
            user = signup.create_account(request, email, encoded, name=name)
            user.email_verified_at = now
            user.save(update_fields=["email_verified_at"])
            trail.record_user(request, AccountTag.SIGNUP_LINK_USE, user)
            environment = environments.find(user.organization_id, "live")
            attempt = SignInAttempt(
                user, environment, method=SignInMethod.SIGNUP_LINK, amr=["pwd"], now=now
            )
            if is_moved:
                address_release.note_move(attempt)
            return signin.finish(request, attempt)
    except IntegrityError as exc:
        # The unique index: another sign-up of the address was faster.
        raise EmailTaken from exc


def _open_link(token: str, *, lock: bool = False, now: datetime) -> SignupLink:
    rows = SignupLink.objects.select_for_update() if lock else SignupLink.objects.all()
    found: SignupLink | None = rows.filter(pk=_digest(token), expires_at__gt=now).first()
    if found is None:
        raise SignupLinkGone
    return found


def _digest(token: str) -> str:
    return mailed_secrets.token_digest("signup link", token)


def _check_rate_limit(request: PlatformRequest, email: str, now: datetime) -> None:
    network = subscriber_network(client_address(request))
    limit = settings.ACCOUNTS.signups_per_hour
    rate_limits.enforce(
        "signup link", network, limit=limit, window=HOUR, error=TooManyAttempts, now=now
    )
    # The recipient's limit is checked last, so that refused requests do not use it up.
    receiver = email.casefold()
    caps = (
        (f"{network} {receiver}", LINKS_PER_NETWORK),
        (receiver, LINKS_PER_RECEIVER),
    )
    for subject, limit in caps:
        rate_limits.enforce(
            "signup link to", subject, limit=limit, window=DAY, error=MailedTooOften, now=now
        )


def _check_try_rate_limit(request: PlatformRequest, now: datetime) -> None:
    network = subscriber_network(client_address(request))
    limit = TRIES_PER_ADDRESS
    rate_limits.enforce(
        "signup link try", network, limit=limit, window=HOUR, error=TooManyAttempts, now=now
    )


def _mail_link(email: str, token: str, expires_at: datetime) -> None:
    queue.send_mail(
        email,
        "signup_link",
        {"link": console_link("sign-up", signup=token), "hours": LIFE_HOURS},
        organization_id=None,
        expires_at=expires_at,
    )


def _mail_conflict(user: User, expires_at: datetime) -> None:
    queue.send_mail(
        user.email,
        "email_change_conflict",
        {"link": console_link("sign-in")},
        # Printed in the mail, because recovery asks for it.
        organization_id=user.organization_id,
        user_id=user.pk,
        expires_at=expires_at,
    )


def delete_expired(*, now: datetime) -> int:
    """Delete expired links; return their number."""
    return SignupLink.objects.filter(expires_at__lte=now).delete()[0]
