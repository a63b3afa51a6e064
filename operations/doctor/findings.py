"""The results of checks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from cryptography.fernet import InvalidToken


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
    except Exception as exc:  # noqa: BLE001 - whatever is broken, the report must be complete
        message = f"The check ended with {type(exc).__name__}."
        return [Finding(subject, Level.FAILED, message, "Check the log, and report this.")]
