"""Finding and verifying registered passkeys."""

from datetime import datetime
from uuid import UUID

import structlog
from django.db.models import Q, QuerySet
from webauthn.helpers.structs import AuthenticatorTransport, PublicKeyCredentialDescriptor

from audit import trail
from common.principals import PlatformRequest
from twofactor.audit_tags import TwoFactorTag
from twofactor.models import Passkey
from twofactor.webauthn import ceremony
from twofactor.webauthn.responses import Assertion

log = structlog.get_logger(__name__)


def passkeys_of(user_id: UUID) -> QuerySet[Passkey]:
    """Return a user's passkeys, the newest first."""
    return Passkey.objects.filter(factor__user_id=user_id).order_by("-id")


def can_sign_in(user_id: UUID) -> bool:
    """True if the user has a passkey to sign in with (oauth.sign_in_methods)."""
    return passkeys_of(user_id).filter(is_user_verified=True).exists()


def descriptor(passkey: Passkey) -> PublicKeyCredentialDescriptor:
    """Return the descriptor of a passkey for a browser."""
    transports = [AuthenticatorTransport(name) for name in passkey.transports]
    return PublicKeyCredentialDescriptor(id=bytes(passkey.credential_id), transports=transports)


def use(
    passkey: Passkey,
    response: Assertion,
    asked: ceremony.ExpectedResponse,
    *,
    is_only_proof: bool,
    request: PlatformRequest,
    now: datetime,
) -> bool:
    """True if an assertion proves its passkey, whose use is recorded; call inside a transaction.

    is_only_proof: nothing else was proven, so user verification is required, and it must not be the
    passkey's first, which no other proof has confirmed (WebAuthn L3 §4, uvInitialized).
    """
    try:
        proven = ceremony.prove(response, asked, public_key=bytes(passkey.public_key))
        _hold(passkey, response, proven, is_only_proof=is_only_proof)
    except ceremony.VerificationFailed as exc:
        log.info("passkey_refused", passkey=str(passkey.pk), reason=str(exc))
        return False
    if not _count_on(passkey, proven, now):
        _note_regression(request, passkey, proven)
        return False
    return True


def _count_on(passkey: Passkey, proven: ceremony.VerifiedAssertion, now: datetime) -> bool:
    """Store the counter of an assertion; return False if it has not increased."""
    # One conditional UPDATE, so that of two concurrent requests with the same count one succeeds.
    # Authenticators without a counter always send 0 (§6.1.1).
    is_later = Q(sign_count__lt=proven.sign_count)
    if proven.sign_count == 0:
        is_later = Q(sign_count=0)
    seen = Passkey.objects.filter(is_later, pk=passkey.pk).update(
        sign_count=proven.sign_count,
        last_used_at=now,
        is_user_verified=passkey.is_user_verified or proven.is_user_verified,
    )
    return seen == 1


def _note_regression(
    request: PlatformRequest, passkey: Passkey, proven: ceremony.VerifiedAssertion
) -> None:
    """Record that a key may have been copied. Both copies are refused."""
    trail.record_user(
        request,
        TwoFactorTag.PASSKEY_SIGN_COUNT_REGRESSION,
        passkey.factor.user,
        outcome="refused",
        passkey=str(passkey.pk),
        sign_count=proven.sign_count,
    )
    log.warning(
        "passkey_sign_count_regression",
        passkey=str(passkey.pk),
        user_id=str(passkey.factor.user_id),
    )


def _hold(
    passkey: Passkey,
    response: Assertion,
    proven: ceremony.VerifiedAssertion,
    *,
    is_only_proof: bool,
) -> None:
    handle = passkey.factor.user_id.bytes
    if response.user_handle is None and is_only_proof:
        raise ceremony.VerificationFailed("The response does not say whose passkey it is.")
    if response.user_handle is not None and response.user_handle != handle:
        raise ceremony.VerificationFailed("The passkey is another user's.")
    if proven.is_backup_eligible != passkey.is_backup_eligible:
        raise ceremony.VerificationFailed("The passkey's backup eligibility has changed.")
    if is_only_proof and not (proven.is_user_verified and passkey.is_user_verified):
        raise ceremony.VerificationFailed("The user was not verified.")
