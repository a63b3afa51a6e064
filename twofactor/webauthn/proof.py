"""Verification of passkeys: an assertion by one of the passkeys in the challenge."""

import json
from datetime import datetime
from secrets import token_bytes
from typing import Final

from webauthn import generate_authentication_options
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, options_to_json_dict
from webauthn.helpers.structs import UserVerificationRequirement

from common.principals import PlatformRequest
from twofactor.factors import throttle
from twofactor.factors.contract import CHALLENGE_LIFE, ChallengeAnswer, Question
from twofactor.models import Factor, Passkey
from twofactor.webauthn import origins, passkeys
from twofactor.webauthn.ceremony import ExpectedResponse
from twofactor.webauthn.responses import assertion

CHALLENGE_BYTES: Final = 32


def begin(factor: Factor, challenge_id: str, *, now: datetime) -> Question:
    """Return the options for ``navigator.credentials.get()``.

    Raises ChannelUnavailable (503) if no passkey belongs to an allowed origin any more.
    """
    registered = list(passkeys.passkeys_of(factor.user_id))
    rp_id = origins.common_rp_id(passkey.rp_id for passkey in registered)
    allowed = [passkey for passkey in registered if passkey.rp_id == rp_id]
    challenge = token_bytes(CHALLENGE_BYTES)
    options = generate_authentication_options(
        rp_id=rp_id,
        challenge=challenge,
        timeout=int(CHALLENGE_LIFE.total_seconds() * 1000),
        allow_credentials=[passkeys.descriptor(passkey) for passkey in allowed],
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    kept = {
        "challenge": bytes_to_base64url(challenge),
        "rp_id": rp_id,
        "passkeys": [str(passkey.pk) for passkey in allowed],
    }
    return Question(secret=json.dumps(kept), request_options=options_to_json_dict(options))


def check(
    factor: Factor,
    secret: str,
    answer: ChallengeAnswer,
    *,
    challenge_id: str,
    request: PlatformRequest,
    now: datetime,
) -> bool:
    """Accept an assertion by a passkey that is in the challenge and still registered.

    Raises MalformedCredential.
    """
    response = assertion(answer.credential)
    kept = json.loads(secret)
    rows = Passkey.objects.select_related("factor__user").filter(
        factor=factor, pk__in=kept["passkeys"]
    )
    passkey = rows.filter(credential_id=response.raw_id).first()
    if passkey is None:
        return False
    asked = ExpectedResponse(
        challenge=base64url_to_bytes(kept["challenge"]),
        rp_id=kept["rp_id"],
        origins=origins.origins_of(kept["rp_id"]),
    )
    if not passkeys.use(passkey, response, asked, is_only_proof=False, request=request, now=now):
        return False
    throttle.reset(factor, now)
    return True
