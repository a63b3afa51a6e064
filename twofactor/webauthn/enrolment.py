"""Registration of passkeys: options in a session that is valid for five minutes and one answer."""

from datetime import datetime, timedelta
from secrets import token_bytes
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from webauthn import generate_registration_options
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, options_to_json_dict
from webauthn.helpers.structs import (
    AttestationConveyancePreference,
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from accounts.models import User
from audit import trail
from common.emails import folded
from common.errors import Conflict, InvalidRequest
from common.principals import PlatformRequest, Principal
from twofactor.audit_tags import TwoFactorTag
from twofactor.errors import CredentialTaken, TooManyPasskeys
from twofactor.factors import enrolments
from twofactor.factors.enrolments import LockedEnrolment
from twofactor.models import Enrolment, Passkey
from twofactor.webauthn import ceremony, origins
from twofactor.webauthn.factor import FACTOR
from twofactor.webauthn.passkeys import descriptor, passkeys_of
from twofactor.webauthn.responses import Attestation, attestation

LIFE: Final = timedelta(minutes=5)
CHALLENGE_BYTES: Final = 32
MAX_PASSKEYS: Final = 20
# The options for every authenticator.
_WANTED: Final[dict[str, Any]] = {
    "timeout": int(LIFE.total_seconds() * 1000),
    "attestation": AttestationConveyancePreference.NONE,
    "authenticator_selection": AuthenticatorSelectionCriteria(
        resident_key=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
    ),
    "supported_pub_key_algs": ceremony.ALGORITHMS,
}


def is_available() -> bool:
    """True if origins for passkeys are configured."""
    return bool(settings.TWOFACTOR.webauthn_origins)


def start(
    principal: Principal,
    *,
    rp_id: str,
    rp_origin: str,
    rp_name: str,
    user_email: str,
    display_name: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the options for ``navigator.credentials.create()``; '' leaves a value to us.

    Raises InvalidRequest (400) naming the field that is not allowed, FactorNotAllowed (403),
    TooManyPasskeys (409), ChannelUnavailable (503).
    """
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, FACTOR.name)
    if user_email and folded(user_email) != folded(user.email):
        raise InvalidRequest.for_field("user_email", "Not your own.", code="not_own")
    chosen, allowed = origins.choose(rp_id, rp_origin)
    registered = _registered(user, chosen)
    challenge = token_bytes(CHALLENGE_BYTES)
    kept = {"challenge": bytes_to_base64url(challenge), "rp_id": chosen, "origins": allowed}
    session_id, _ = enrolments.begin(user, FACTOR.name, kept, now=now, life=LIFE)
    options = generate_registration_options(
        rp_id=chosen,
        rp_name=rp_name or settings.SERVICE_NAME.capitalize(),
        # The handle has no address, because authenticators show and sync it (§14.6.1).
        user_id=user.pk.bytes,
        user_name=user.email,
        user_display_name=display_name or user.email,
        challenge=challenge,
        exclude_credentials=registered,
        **_WANTED,
    )
    return {
        "creation_options": options_to_json_dict(options),
        "session_data": {"session_id": session_id},
    }


def _registered(user: User, rp_id: str) -> list[PublicKeyCredentialDescriptor]:
    """Return the passkeys that a browser must not register again. Raises TooManyPasskeys."""
    registered = list(passkeys_of(user.pk))
    if len(registered) >= MAX_PASSKEYS:
        raise TooManyPasskeys
    return [descriptor(passkey) for passkey in registered if passkey.rp_id == rp_id]


def finish(
    request: PlatformRequest,
    principal: Principal,
    *,
    session_id: str,
    credential: dict[str, Any],
    name: str,
    now: datetime,
) -> dict[str, Any]:
    """Store the passkey that the browser created; the session accepts one answer, right or wrong.

    Raises MalformedCredential (400, the session stays valid), InvalidRequest (400), CredentialTaken
    and TooManyPasskeys (409), EnrolmentGone (410), FactorNotAllowed (403).
    """
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, FACTOR.name)
    response = attestation(credential)
    refusal = None
    with transaction.atomic():
        locked = enrolments.lock(user, FACTOR.name, session_id, now=now)
        try:
            with transaction.atomic():
                passkey = _register(principal, locked, response, name=name, now=now)
                trail.record_request(
                    request, TwoFactorTag.PASSKEY_CREATE, passkey=str(passkey.id), name=passkey.name
                )
                more = enrolments.complete(
                    request, principal, user, FACTOR, is_replaced=False, now=now
                )
        except (InvalidRequest, Conflict) as exc:
            _use_up(locked, now=now)
            refusal = exc
    # Raised outside the transaction, so that the session stays used.
    if refusal is not None:
        raise refusal
    return {
        "credential_id": bytes_to_base64url(response.raw_id),
        "name": passkey.name,
        "created_at": int(passkey.created_at.timestamp()),
        **more,
    }


def _register(
    principal: Principal,
    locked: LockedEnrolment,
    response: Attestation,
    *,
    name: str,
    now: datetime,
) -> Passkey:
    asked = ceremony.ExpectedResponse(
        challenge=base64url_to_bytes(locked.secret["challenge"]),
        rp_id=locked.secret["rp_id"],
        origins=locked.secret["origins"],
    )
    try:
        made = ceremony.register(response, asked)
    except ceremony.VerificationFailed as exc:
        raise InvalidRequest.for_field("credential", str(exc), code="refused") from exc
    # The factor's row is locked from here on, so that the limit holds for concurrent sessions.
    factor, _ = enrolments.activate(principal, locked, now=now)
    user: User = locked.row.user
    if passkeys_of(user.pk).count() >= MAX_PASSKEYS:
        raise TooManyPasskeys
    passkey = Passkey(
        factor=factor,
        credential_id=response.raw_id,
        public_key=made.public_key,
        sign_count=made.sign_count,
        is_backup_eligible=made.is_backup_eligible,
        is_user_verified=made.is_user_verified,
        transports=response.transports,
        rp_id=asked.rp_id,
        name=name,
        created_at=now,
    )
    try:
        with transaction.atomic():
            passkey.save(force_insert=True)
    except IntegrityError as exc:
        raise CredentialTaken from exc
    return passkey


def _use_up(locked: LockedEnrolment, *, now: datetime) -> None:
    rows = Enrolment.objects.filter(pk=locked.row.pk)
    rows.update(used_at=now)
