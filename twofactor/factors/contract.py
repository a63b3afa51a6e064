"""The interface of a factor: its description, its enrolment module and its proof module.

Each folder of a factor holds ``factor.py`` (FACTOR), ``enrolment.py`` and ``proof.py``;
``twofactor/registry.py`` lists them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from common.principals import PlatformRequest
from twofactor.models import Factor

CHALLENGE_LIFE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class FactorType:
    """A method that can be proven as a second factor.

    name: as in ``enabled_methods`` and in paths. challenge_name: the name in challenges.
    label: for people. amr: the name of RFC 8176 in the ``amr`` claim. is_second_factor: False if it
    only replaces another factor.
    """

    name: str
    label: str
    amr: str
    challenge_name: str
    is_second_factor: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """The data that ``Proof.begin`` prepares for a challenge.

    secret: compared with the answer; stored encrypted. hint: where a code was sent.
    delivery: ``queued`` for a code that is being sent. request_options: for a browser's passkey.
    """

    secret: str = ""
    hint: str | None = None
    delivery: str | None = None
    request_options: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChallengeAnswer:
    """The answer to a challenge: a code, or a WebAuthn credential."""

    code: str = ""
    credential: Mapping[str, Any] = field(default_factory=dict)
    trust_device: bool = False
    device_name: str = ""


class Proof(Protocol):
    """A factor's ``proof`` module, which verifies answers."""

    def begin(self, factor: Factor, challenge_id: str, *, now: datetime) -> Question:
        """Prepare a challenge, and send its code if there is one."""

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
        """True if the answer is correct, which resets the factor's failures.

        request: for the audit trail. Raises MalformedCode for a malformed answer.
        """


class EnrolmentModule(Protocol):
    """A factor's ``enrolment`` module, which sets the factor up."""

    def is_available(self) -> bool:
        """True if this installation can set up and verify the factor."""
