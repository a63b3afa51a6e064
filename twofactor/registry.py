"""The list of factors. To add one: a folder with the same files as the others, and a line here.

Each factor has its name, label and ``amr`` (``factor.py``), its set-up (``enrolment.py``), its
verification (``proof.py``) and its paths below ``/v1/auth/2fa/NAME`` (``views.py``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from common.api.viewsets import PlatformViewSet
from twofactor.backup_codes import enrolment as backup_codes_enrolment
from twofactor.backup_codes import proof as backup_codes_proof
from twofactor.backup_codes.factor import FACTOR as BACKUP_CODES
from twofactor.backup_codes.views import BackupCodeViewSet
from twofactor.email import enrolment as email_enrolment
from twofactor.email import proof as email_proof
from twofactor.email.factor import FACTOR as EMAIL
from twofactor.email.views import EmailViewSet
from twofactor.factors.contract import EnrolmentModule, FactorType, Proof
from twofactor.sms import enrolment as sms_enrolment
from twofactor.sms import proof as sms_proof
from twofactor.sms.factor import FACTOR as SMS
from twofactor.sms.views import SmsViewSet
from twofactor.totp import enrolment as totp_enrolment
from twofactor.totp import proof as totp_proof
from twofactor.totp.factor import FACTOR as TOTP
from twofactor.totp.views import TotpViewSet
from twofactor.webauthn import enrolment as webauthn_enrolment
from twofactor.webauthn import proof as webauthn_proof
from twofactor.webauthn.factor import FACTOR as WEBAUTHN
from twofactor.webauthn.views import PasskeyRegistrationViewSet

ViewSet = type[PlatformViewSet]


@dataclass(frozen=True, slots=True)
class RegisteredFactor:
    """A factor with its modules and its paths."""

    type: FactorType
    enrolment: EnrolmentModule
    proof: Proof
    viewset: ViewSet


# In the order in which they are offered.
FACTORS: Final = (
    RegisteredFactor(TOTP, totp_enrolment, totp_proof, TotpViewSet),
    RegisteredFactor(SMS, sms_enrolment, sms_proof, SmsViewSet),
    RegisteredFactor(EMAIL, email_enrolment, email_proof, EmailViewSet),
    RegisteredFactor(WEBAUTHN, webauthn_enrolment, webauthn_proof, PasskeyRegistrationViewSet),
    RegisteredFactor(BACKUP_CODES, backup_codes_enrolment, backup_codes_proof, BackupCodeViewSet),
)
_BY_NAME: Final = {factor.type.name: factor for factor in FACTORS}
_BY_CHALLENGE_NAME: Final = {factor.type.challenge_name: factor for factor in FACTORS}


def factor_of(name: str) -> RegisteredFactor:
    """Return the factor with a name; raise KeyError for an unknown one."""
    return _BY_NAME[name]


def challenge_names(names: Iterable[str]) -> list[str]:
    """Return the names of factors in challenges."""
    return [_BY_NAME[name].type.challenge_name for name in names]


def name_in_challenges(challenge_name: str) -> str:
    """Return the factor's name for a name in challenges; unknown names are returned unchanged."""
    found = _BY_CHALLENGE_NAME.get(challenge_name)
    return found.type.name if found else challenge_name
