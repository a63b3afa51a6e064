"""The results of checks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import structlog
from cryptography.fernet import InvalidToken
from django.db import Error

from common.machine.reasons import reason

log = structlog.get_logger(__name__)


class Level(StrEnum):
    """SKIPPED: the check does not apply here, or could not be made. FAILED: users notice it."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence about one subject. advice: what to do; '' if nothing has to be done."""

    subject: str
    level: Level
    message: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the members of the command's JSON."""
        return {
            "subject": self.subject,
            "level": self.level.value,
            "message": self.message,
            "advice": self.advice,
        }


Check = Callable[[], Iterable[Finding]]


def run(subject: str, check: Check) -> list[Finding]:
    """Return a check's findings; an exception becomes a finding, so that other checks still run."""
    try:
        return list(check())
    except InvalidToken:
        message = "A stored secret is encrypted with a key that ZSECRET_KEYS lacks."
        return [Finding(subject, Level.FAILED, message, "Set it, too (docs/production.md, Keys).")]
    except (Error, OSError) as exc:
        # A server's answer, or its silence: no fault of the check.
        message = f"It could not be checked: {reason(exc)}"
        return [Finding(subject, Level.FAILED, message, "Mend what it names, and ask again.")]
    except Exception as exc:
        log.exception("doctor_check_failed", subject=subject)
        message = f"The check ended with {type(exc).__name__}."
        return [Finding(subject, Level.FAILED, message, "Report this, with the trace in the log.")]
