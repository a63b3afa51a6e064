"""Security questions: weak, so off by default, and never sufficient alone.

OWASP ASVS 5.0 6.4.2, NIST SP 800-63B-4 §3.1.1.2. Right answers only cause the mail that a recovery
by e-mail would have caused anyway.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from accounts import notices, passwords
from accounts.models import User
from audit import trail
from common import rate_limits
from common.crypto import keyed_digest
from common.emails import folded
from common.errors import InvalidRequest
from common.principals import PlatformRequest, Principal
from recovery import recovery_rows, tasks
from recovery.audit_tags import RecoveryTag
from recovery.errors import QuestionsDisabled, RecoveryGone, RecoveryTooOften
from recovery.models import Method, SecurityAnswer
from twofactor.stored_secrets import unseal

ASKED: Final = 3
MIN_CHARS: Final = 3
TRIES_A_DAY: Final = 3
DAY: Final = timedelta(days=1)
# Facts that are neither public nor easily guessed. The question of an id never changes.
CATALOGUE: Final[Mapping[str, str]] = {
    "childhood_friend": "What was the full name of your best friend as a child?",
    "childhood_phone": "What was the first phone number you knew by heart?",
    "dream_job": "What did you want to become when you were ten?",
    "first_boss": "What was the full name of your first boss?",
    "first_concert": "Which was the first concert you went to, and where?",
    "first_flight": "Where did your first flight go?",
    "first_school_teacher": "What was the full name of your first teacher?",
    "grandparents_street": "In which street did your grandparents live?",
    "lost_thing": "Which lost thing do you miss most?",
    "old_neighbour": "What was the name of the oldest neighbour of your childhood?",
    "school_play": "Which part did you have in a play at school?",
    "stuffed_animal": "What was your stuffed animal called?",
}


def normalize(answer: str) -> str:
    """Return only letters and digits, case-folded, so that the spelling does not matter."""
    folded = unicodedata.normalize("NFKC", answer).casefold()
    return "".join(char for char in folded if char.isalnum())


def described(asked: Sequence[str]) -> list[dict[str, str]]:
    """Return questions with their texts."""
    return [{"question_id": name, "question": CATALOGUE[name]} for name in asked]


def asked_of(email: str, *, subject: str) -> list[str]:
    """Return the questions for an account, or decoys without an account; one query either way.

    subject: the decoys are derived from it, so that they are the same each time. The claimed
    organization changes nothing: what differed would show whether it is the right one.
    """
    real = sorted(_answers_of(email))
    decoys = sorted(CATALOGUE, key=lambda name: _rank(subject, name))[:ASKED]
    return real if len(real) == ASKED else sorted(decoys)


def _rank(subject: str, name: str) -> bytes:
    return keyed_digest(settings.ACCOUNTS.mfa_keys[0], "decoy question", subject, name)


def _answers_of(email: str, *, org_id: int | None = None) -> dict[str, str]:
    """Return the hashes by question; empty if questions are disabled or there is no account.

    org_id: of the account; None for any.
    """
    found = SecurityAnswer.objects.filter(
        user__email__iexact=email.strip(),
        user__is_active=True,
        organization__recovery_questions_enabled=True,
    )
    if org_id is not None:
        found = found.filter(organization_id=org_id)
    rows = found.values_list("question", "encoded", "user__email")
    return {name: encoded for name, encoded, its in rows if folded(its) == folded(email)}


def answer(
    request: PlatformRequest, recovery_id: str, answers: Mapping[str, str], *, now: datetime
) -> datetime:
    """Check answers, once per recovery; mail the token for right ones. Return when it expires.

    Each call computes three hashes, and the response is the same for right and wrong answers and
    for an unknown account.
    Raises RecoveryGone (410), InvalidRequest (400, not counted) if the questions are not the asked
    ones, RecoveryTooOften (429) after three attempts a day, HashingBusy (503).
    """
    with transaction.atomic():
        recovery = recovery_rows.lock_by_capability(recovery_id, now=now)
        if recovery.method != Method.SECURITY_QUESTIONS or recovery.answered_at is not None:
            raise RecoveryGone
        if set(answers) != set(recovery.asked):
            message = "Answer each of the questions that were asked."
            raise InvalidRequest.for_field("answers", message, code="other_questions")
        claim = unseal(recovery.request)
        _check_rate_limit(folded(claim["email"]), now)
        kept = _answers_of(claim["email"], org_id=claim["org_id"])
        # Every answer is hashed, even after a wrong one.
        results = [_is_right(kept.get(name), answers[name]) for name in recovery.asked]
        recovery.answered_at, recovery.is_answered = now, all(results)
        recovery.save(update_fields=["answered_at", "is_answered"])
        tasks.resolve.defer(recovery_id=str(recovery.pk))
        trail.add(request, RecoveryTag.RECOVERY_ANSWER, data={"recovery": str(recovery.pk)})
    return recovery.expires_at


def _check_rate_limit(subject: str, now: datetime) -> None:
    rate_limits.enforce(
        "recovery answers", subject, limit=TRIES_A_DAY, window=DAY, error=RecoveryTooOften, now=now
    )


def _is_right(encoded: str | None, answer: str) -> bool:
    # A user that is never saved, so that ``passwords.is_right`` computes one hash also without an
    # account.
    stand_in = User(password=encoded) if encoded else None
    return passwords.is_right(stand_in, normalize(answer))


def mine(principal: Principal) -> dict[str, Any]:
    """Return the catalogue and which questions the caller has answered, never the answers."""
    rows = SecurityAnswer.objects.all()
    chosen = rows.filter(user_id=principal.own_id).order_by("question")
    users = User.objects.all()
    user = users.select_related("organization").get(pk=principal.own_id)
    return {
        "enabled": user.organization.recovery_questions_enabled,
        "catalogue": described(list(CATALOGUE)),
        "answered": [row.question for row in chosen],
    }


def replace(
    request: PlatformRequest, principal: Principal, answers: Mapping[str, str], *, now: datetime
) -> None:
    """Replace all answers by three new ones; no answers removes them.

    Raises QuestionsDisabled (403), InvalidRequest (400), HashingBusy (503).
    """
    users = User.objects.all()
    user = users.select_related("organization").get(pk=principal.own_id)
    if answers:
        if not user.organization.recovery_questions_enabled:
            raise QuestionsDisabled
        _refuse_weak(answers)
    encoded = {name: passwords.hash_password(normalize(text)) for name, text in answers.items()}
    with transaction.atomic():
        # Serializes concurrent replacements.
        users.select_for_update(of=("self",)).get(pk=user.pk)
        SecurityAnswer.objects.filter(organization_id=user.organization_id, user=user).delete()
        SecurityAnswer.objects.bulk_create(
            SecurityAnswer(
                organization_id=user.organization_id,
                user=user,
                question=name,
                encoded=text,
                created_at=now,
            )
            for name, text in encoded.items()
        )
        trail.record_request(request, RecoveryTag.RECOVERY_QUESTIONS_UPDATE, number=len(encoded))
        notices.notify(user, "recovery_questions_changed")


def _refuse_weak(answers: Mapping[str, str]) -> None:
    if len(answers) != ASKED or not set(answers) <= set(CATALOGUE):
        message = f"Answer {ASKED} questions of the catalogue, or none."
        raise InvalidRequest.for_field("answers", message, code="wrong_number")
    normalized = [normalize(text) for text in answers.values()]
    if any(len(text) < MIN_CHARS for text in normalized):
        message = f"At least {MIN_CHARS} letters or digits in each answer."
        raise InvalidRequest.for_field("answers", message, code="too_short")
    if len(set(normalized)) < ASKED:
        message = "A different answer to each question."
        raise InvalidRequest.for_field("answers", message, code="repeated")
