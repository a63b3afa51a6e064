"""Verification of backup codes: each is accepted once, also under concurrency."""

from datetime import datetime

from accounts import notices
from common import ids
from common.principals import PlatformRequest
from twofactor.backup_codes.enrolment import CODE_CHARS, code_digests
from twofactor.errors import MalformedCode
from twofactor.factors import throttle
from twofactor.factors.contract import ChallengeAnswer, Question
from twofactor.models import BackupCode, Factor


def begin(factor: Factor, challenge_id: str, *, now: datetime) -> Question:
    """Prepare nothing: the user has the codes."""
    return Question()


def check(
    factor: Factor,
    secret: str,
    answer: ChallengeAnswer,
    *,
    challenge_id: str,
    request: PlatformRequest,
    now: datetime,
) -> bool:
    """Use a code up; the user is notified of each use.

    Raises MalformedCode for characters outside the alphabet and for another length.
    """
    code = ids.typed_code(answer.code)
    if not ids.is_code(code, length=CODE_CHARS):
        message = "Sixteen letters and digits, as on the list."
        raise MalformedCode.for_field("code", message, code="malformed")
    unused = BackupCode.objects.filter(
        factor=factor, digest__in=code_digests(factor, code), used_at=None
    )
    if not unused.update(used_at=now):
        return False
    throttle.reset(factor, now)
    left = BackupCode.objects.filter(factor=factor, used_at=None).count()
    notices.notify(factor.user, "backup_code_used", remaining=left)
    return True
