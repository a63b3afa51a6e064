"""Enrolment of TOTP: a seed is shown once; the factor is active after one correct code."""

import base64
import io
import secrets
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, Final
from urllib.parse import quote, urlencode

import qrcode
from django.db import transaction
from qrcode.constants import ERROR_CORRECT_L
from qrcode.image.pure import PyPNGImage

from common import rate_limits
from common.principals import PlatformRequest, Principal
from twofactor.backup_codes import enrolment as backup_codes
from twofactor.errors import EnrolmentTooOften
from twofactor.factors import enrolments
from twofactor.totp.factor import FACTOR
from twofactor.totp.proof import matching_step

SEED_BYTES: Final = 20
# Each set-up draws a QR code, which takes up to 60 ms.
SETUPS_PER_HOUR: Final = 30
HOUR: Final = timedelta(hours=1)
# Maximum length of a name in the URI, percent-encoded: an address of 254 characters fits, and three
# such names take less than half of a QR code's capacity, so that a camera can read it.
MAX_NAME_CHARS: Final = 256


def is_available() -> bool:
    """Return True: an authenticator app needs no configuration."""
    return True


def setup(principal: Principal, *, issuer: str, account_name: str, now: datetime) -> dict[str, Any]:
    """Return a new seed and its QR code; the earlier factor works until this one is verified.

    Raises FactorNotAllowed (403), EnrolmentTooOften (429).
    """
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, FACTOR.name)
    rate_limits.enforce(
        "totp setup",
        str(user.pk),
        limit=SETUPS_PER_HOUR,
        window=HOUR,
        error=EnrolmentTooOften,
        now=now,
    )
    seed = base64.b32encode(secrets.token_bytes(SEED_BYTES)).decode()
    secret_id, _ = enrolments.begin(user, FACTOR.name, {"seed": seed}, now=now)
    uri = otpauth_uri(
        seed, issuer=issuer or user.organization.name, account_name=account_name or user.email
    )
    return {"secret_id": secret_id, "secret": seed, "qr_code_png": qr_code_png(uri)}


def otpauth_uri(seed: str, *, issuer: str, account_name: str) -> str:
    """Return the key URI for authenticator apps; long names are cut.

    Colons are removed, because a colon ends the issuer.
    """
    issuer, account_name = _shortened(issuer), _shortened(account_name)
    label = f"{quote(issuer)}:{quote(account_name)}"
    parameters = {"secret": seed, "issuer": issuer, "algorithm": "SHA1", "digits": 6, "period": 30}
    return f"otpauth://totp/{label}?{urlencode(parameters, quote_via=quote)}"


def _shortened(name: str) -> str:
    name = name.replace(":", " ")
    ends = accumulate(len(quote(char)) for char in name)
    return name[: sum(end <= MAX_NAME_CHARS for end in ends)]


def qr_code_png(text: str) -> str:
    """Return a QR code as a base64-encoded PNG, with low error correction, which suits screens."""
    out = io.BytesIO()
    image = qrcode.make(
        text, image_factory=PyPNGImage, error_correction=ERROR_CORRECT_L, box_size=6, border=4
    )
    image.save(out)
    return base64.b64encode(out.getvalue()).decode()


def verify(
    request: PlatformRequest, principal: Principal, *, secret_id: str, code: str, now: datetime
) -> dict[str, Any]:
    """Activate TOTP with a correct code; the first time this also returns new backup codes.

    Raises MalformedCode (400, not counted), CodeRejected (401, counted), EnrolmentGone (410),
    FactorNotAllowed (403).
    """
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, FACTOR.name)
    refusal = None
    with transaction.atomic():
        locked = enrolments.lock(user, FACTOR.name, secret_id, now=now)
        seed = locked.secret["seed"]
        step = matching_step(seed, code, now=now)
        if step is None:
            refusal = enrolments.count_failure(locked)
        else:
            _, is_new = enrolments.activate(principal, locked, secret=seed, last_step=step, now=now)
            codes = backup_codes.generate(user, now=now) if is_new else []
            more = enrolments.complete(
                request, principal, user, FACTOR, is_replaced=not is_new, now=now
            )
    if refusal is not None:
        raise refusal
    return {"success": True, "backup_codes": codes, **more}
