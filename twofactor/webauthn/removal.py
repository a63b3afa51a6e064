"""Removing a passkey."""

from django.db import transaction

from accounts import notices
from audit import trail
from common.principals import PlatformRequest, Principal
from oauth import sign_in_methods
from twofactor.audit_tags import TwoFactorTag
from twofactor.errors import MalformedCredential, PasskeyNotFound
from twofactor.factors import active_factors, enrolments, holdings
from twofactor.trusted_devices import devices
from twofactor.webauthn import passkeys
from twofactor.webauthn.factor import FACTOR
from twofactor.webauthn.responses import decode_id


def remove(request: PlatformRequest, principal: Principal, credential_id: str) -> None:
    """Remove one passkey; removing the last one removes the method.

    Raises PasskeyNotFound (404), also for another user's, RequiredByPolicy (409), LastLoginMethod
    (409) for the user's only sign-in method.
    """
    try:
        raw_id = decode_id(credential_id)
    except MalformedCredential:
        raise PasskeyNotFound from None
    user = enrolments.user_of(principal)
    with transaction.atomic():
        # The factors are locked, so that two concurrent removals do not leave a method without
        # passkeys.
        holdings.holdings_of(user.pk, lock=True)
        mine = passkeys.passkeys_of(user.pk)
        passkey = mine.filter(credential_id=raw_id).first()
        if passkey is None:
            raise PasskeyNotFound
        trail.record_request(
            request, TwoFactorTag.PASSKEY_DELETE, passkey=str(passkey.pk), name=passkey.name
        )
        if mine.count() == 1:
            active_factors.disable(request, principal, FACTOR)
            return
        with sign_in_methods.keep_one(user.pk):
            passkey.delete()
        devices.delete_all(user.pk)
        notices.notify(user, "factor_removed", method=FACTOR.label)
