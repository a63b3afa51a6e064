"""Enrolment of SMS as a factor: a phone number, verified by a code sent to it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import phonenumbers
from django.conf import settings
from django.db import transaction
from phonenumbers import PhoneNumber, PhoneNumberType

from common.errors import InvalidRequest
from common.principals import PlatformRequest, Principal
from outbox.messages import queue
from twofactor import sent_codes
from twofactor.backup_codes.factor import FACTOR as BACKUP_CODES
from twofactor.errors import ChannelUnavailable
from twofactor.factors import enrolments
from twofactor.sent_codes import CodeChannel, CodeOwner
from twofactor.sms.factor import FACTOR

# Where numbering plans do not distinguish both (North America), a number has the second type.
TEXTED_TYPES: Final = (
    PhoneNumberType.MOBILE,
    PhoneNumberType.FIXED_LINE_OR_MOBILE,
    PhoneNumberType.FIXED_LINE,
)


def message(code: str) -> str:
    """Return the text of a message."""
    return f"{code} is your {settings.SERVICE_NAME} code. It is good for ten minutes."


def is_available() -> bool:
    """True if this installation can send text messages."""
    return queue.is_sms_configured()


def refuse_unconfigured(others: Iterable[str] = ()) -> None:
    """Raise ChannelUnavailable if no SMS provider is configured.

    others: the user's other methods, which the error names.
    """
    if not is_available():
        named = [
            BACKUP_CODES.challenge_name if method == BACKUP_CODES.name else method
            for method in others
            if method != FACTOR.name
        ]
        raise ChannelUnavailable("No SMS provider is configured here.", extra={"methods": named})


def canonical(number: str) -> str:
    """Return a number in E.164. Raises InvalidRequest (400) saying why it is not valid."""
    try:
        parsed = phonenumbers.parse(number, None)
    except phonenumbers.NumberParseException as exc:
        if exc.error_type != phonenumbers.NumberParseException.INVALID_COUNTRY_CODE:
            raise _no_number() from exc
        reason = "Start with + and the country code, as +49 151 23456789."
        raise InvalidRequest.for_field("phone_number", reason, code="no_country_code") from exc
    if not phonenumbers.is_valid_number(parsed):
        raise _no_number()
    if not _is_texted(parsed):
        reason = "Codes are sent to mobile and landline numbers of a country only."
        raise InvalidRequest.for_field("phone_number", reason, code="not_texted")
    if not _is_allowed(parsed):
        reason = "No codes are sent to numbers of this country."
        raise InvalidRequest.for_field("phone_number", reason, code="country_not_texted")
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


def _is_texted(number: PhoneNumber) -> bool:
    """True for a number that can get messages and whose owner does not earn by them.

    Satellite phones have mobile numbers without a country.
    """
    is_of_a_country = number.country_code not in phonenumbers.COUNTRY_CODES_FOR_NON_GEO_REGIONS
    return is_of_a_country and phonenumbers.number_type(number) in TEXTED_TYPES


def is_of_allowed_country(number: str) -> bool:
    """True if a number in E.164 is of a country in ZSMS_COUNTRIES."""
    return _is_allowed(phonenumbers.parse(number, None))


def _is_allowed(number: PhoneNumber) -> bool:
    allowed = settings.TWOFACTOR.sms_countries
    return not allowed or phonenumbers.region_code_for_number(number) in allowed


def _no_number() -> InvalidRequest:
    reason = "There is no such number in any country's numbering plan."
    return InvalidRequest.for_field("phone_number", reason, code="not_a_number")


def hint_of(number: str) -> str:
    """Return the masked number."""
    return f"•••• {number[-2:]}"


CHANNEL: Final = CodeChannel(FACTOR, hint_of)


def setup(
    request: PlatformRequest, principal: Principal, *, phone_number: str, now: datetime
) -> dict[str, Any]:
    """Send a code to a number that the user wants to set up as a factor.

    Raises InvalidRequest (400), FactorNotAllowed (403), ChannelUnavailable (503),
    SendingTooOften (429).
    """
    number = canonical(phone_number)
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, FACTOR.name)
    refuse_unconfigured(user.organization.mfa_allowed_methods)
    # Outside the transaction, so that a refused sending stays counted.
    owner = CodeOwner(user.organization_id, user.pk)
    sent_codes.check_rate_limit("sms", number, owner, request=request, now=now)
    with transaction.atomic():
        verification_id, code, row = sent_codes.begin(user, FACTOR.name, number, now=now)
        queue.send_sms(
            number,
            message(code),
            organization_id=user.organization_id,
            user_id=user.pk,
            expires_at=now + sent_codes.LIFE,
        )
    return {
        "verification_id": verification_id,
        "expires_at": int(row.expires_at.timestamp()),
        "phone_hint": hint_of(number),
        "delivery": "queued",
    }
