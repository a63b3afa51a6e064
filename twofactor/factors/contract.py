"""What every factor consists of: its description, its enrolment module and its proof module.

Each folder of a factor holds ``factor.py`` (FACTOR), ``enrolment.py`` and ``proof.py``;
``twofactor/registry.py`` lists them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from platform_site.lib.principals import PlatformRequest
from twofactor.models import Factor

CHALLENGE_LIFE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class FactorType:
    """A method that can be proven as a second factor.

    name: as in ``enabled_methods`` and in paths. challenge_name: as challenges spell it.
    label: for people. amr: the name of RFC 8176 in the ``amr`` claim. is_second_factor: False for
    what only replaces another factor.
    """

    name: str
    label: str
    amr: str
    challenge_name: str
    is_second_factor: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """What a proof has prepared for a challenge.

    secret: what the answer is compared with; stored encrypted. hint: where a code was sent.
    delivery: ``queued`` for a code on its way. request_options: for a browser's passkey.
    """

    secret: str = ""
    hint: str | None = None
    delivery: str | None = None
    request_options: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChallengeAnswer:
    """What a caller answers: a code, or a WebAuthn credential."""

    code: str = ""
    credential: Mapping[str, Any] = field(default_factory=dict)
    trust_device: bool = False
    device_name: str = ""


class Proof(Protocol):
    """A factor's ``proof`` module: where the factor is proven."""

    def begin(self, factor: Factor, challenge_id: str, *, now: datetime) -> Question:
        """Prepare a question, and send what has to be sent."""

    def check(
        self,
        factor: Factor,
        secret: str,
        answer: ChallengeAnswer,
        *,
        challenge_id: str,
        request: PlatformRequest,
        now: datetime,
    ) -> bool:
        """Return whether the answer is right; a right one forgives the factor's wrong ones.

        request: for the audit trail. Raises MalformedCode for what cannot be an answer.
        """


class Enrolment(Protocol):
    """A factor's ``enrolment`` module: where the factor is set up."""

    def is_available(self) -> bool:
        """Return whether this installation can set the factor up and ask for it."""
