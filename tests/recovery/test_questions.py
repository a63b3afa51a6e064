"""Security questions: off by default, decoys for unknown accounts, and only a mail as result."""

from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import passwords
from accounts.models import User
from environments.models import Organization
from recovery.models import SecurityAnswer
from recovery.questions import CATALOGUE
from tests import inbox
from tests.cast import Answer, Caller, signed_in
from tests.queries import statements
from tests.recovery.support import (
    PREFIX,
    complete,
    initiate,
    mailed_token,
    sent,
    verify,
    work,
)
from tests.twofactor.holder import Holder

pytestmark = pytest.mark.django_db

QUESTIONS = f"{PREFIX}/questions"
ANSWERS = {
    "dream_job": "Lion tamer",
    "lost_thing": "The red kite, 1987",
    "first_concert": "Ärzte in Kassel",
}


@pytest.fixture(autouse=True)
def _turned_on(home: Organization) -> None:
    home.recovery_questions_enabled = True
    home.save(update_fields=["recovery_questions_enabled"])


def keep(user: User, answers: dict[str, str] = ANSWERS) -> Answer:
    """Answer one's own questions."""
    return signed_in(user).call("PUT", QUESTIONS, {"answers": answers})


def start(user: User | None = None, **more: Any) -> Answer:
    """Start a recovery by questions."""
    return initiate(user, method="security_questions", **more)


def hand_in(started: Answer, answers: dict[str, str] = ANSWERS) -> Answer:
    """Answer the questions that were asked; the jobs are run."""
    body = {"recovery_id": started.body["recovery_id"], "answers": answers}
    answer = Caller().post(f"{PREFIX}/answers", body)
    work()
    return answer


def asked(started: Answer) -> list[str]:
    """Return the ids of the questions that were asked."""
    return [row["question_id"] for row in started.body["questions"]]


def test_right_answers_only_send_the_mail(alice: User) -> None:
    keep(alice)
    started = start(alice)
    assert asked(started) == sorted(ANSWERS)
    assert started.body["questions"][0]["question"] == CATALOGUE["dream_job"]
    assert sent("recovery_token") == []
    answer = hand_in(started)
    assert (answer.status, set(answer.body)) == (202, {"expires_at"})
    assert [mail["to"] for mail in sent("recovery_token")] == [alice.email]
    assert complete(verify(started, mailed_token())).status == 204


def test_the_owner_is_notified_of_changed_answers(alice: User) -> None:
    """A stolen session must not leave a way back in unseen."""
    assert keep(alice).status == 200
    assert keep(alice, {}).status == 200
    assert inbox.notices_to(alice.email) == ["recovery_questions_changed"] * 2


def test_right_answers_do_not_skip_the_second_factor(holder: Holder) -> None:
    body = {"answers": ANSWERS}
    assert holder.caller.call("PUT", QUESTIONS, body).status == 200
    started = start(holder.user)
    hand_in(started)
    verified = verify(started, mailed_token())
    assert verified.body["next"] == "password_and_challenge"
    assert complete(verified).code == "recovery_challenge_required"


def test_case_and_blanks_of_an_answer_are_ignored(alice: User) -> None:
    keep(alice)
    typed = {
        "dream_job": "  lion-TAMER ",
        "lost_thing": "the red kite 1987!",
        "first_concert": "A\u0308rzte in kassel",
    }
    hand_in(start(alice), typed)
    assert len(sent("recovery_token")) == 1


def test_right_wrong_and_unknown_accounts_answers_get_the_same_response(
    alice: User, hashes: list[str]
) -> None:
    keep(alice)
    seen = []
    wrong = ANSWERS | {"lost_thing": "my keys"}
    for started, answers in (
        (start(alice), ANSWERS),
        (start(alice), wrong),
        (start(email="nobody@example.com", org_id=alice.organization_id), None),
    ):
        hashes.clear()
        given = answers or dict.fromkeys(asked(started), "a guess")
        body = {"recovery_id": started.body["recovery_id"], "answers": given}
        with CaptureQueriesContext(connection) as captured:
            answer = Caller().post(f"{PREFIX}/answers", body)
        seen.append((answer.status, answer.body.keys(), len(hashes), statements(captured)))
        work()
        # Nor does a second try tell them apart.
        again = hand_in(started, given)
        assert (again.status, again.code) == (410, "recovery_gone")
    assert seen == [seen[0]] * 3
    assert seen[0][:3] == (202, {"expires_at"}, 3)
    assert len(sent("recovery_token")) == 1


def test_no_token_is_accepted_before_the_answers_are_right(alice: User) -> None:
    keep(alice)
    started = start(alice)
    assert verify(started, "0" * 26).code == "recovery_token_rejected"
    hand_in(started, ANSWERS | {"dream_job": "clown"})
    assert verify(started, "0" * 26).code == "recovery_token_rejected"
    assert sent("recovery_token") == []


def test_decoy_questions_are_always_the_same_for_one_address(alice: User, charlie: User) -> None:
    nobody = [start(email=mail, org_id=1) for mail in ("no@example.com", " NO@example.COM")]
    assert asked(nobody[0]) == asked(nobody[1])
    others = {tuple(asked(start(email=f"no{n}@example.com", org_id=1))) for n in range(8)}
    assert len(others) > 1
    assert all(len(set(row)) == 3 and set(row) <= set(CATALOGUE) for row in others)
    # A user without questions is asked decoys, too, and so is everyone where they are off.
    assert asked(start(alice)) == asked(start(alice))
    assert asked(start(charlie)) == asked(start(charlie))


def test_answers_are_limited_to_three_tries_a_day(alice: User) -> None:
    keep(alice)
    for _ in range(3):
        assert hand_in(start(alice), ANSWERS | {"dream_job": "clown"}).status == 202
    answer = hand_in(start(alice))
    assert (answer.status, answer.code) == (429, "recovery_too_often")
    assert sent("recovery_token") == []


def test_answers_for_an_unknown_account_are_limited_to_three_tries_a_day(alice: User) -> None:
    for number in range(4):
        started = start(email="nobody@example.com", org_id=alice.organization_id)
        answer = hand_in(started, dict.fromkeys(asked(started), "a guess"))
        assert answer.status == (202 if number < 3 else 429)


def test_answers_to_other_questions_are_refused_with_400_and_not_counted(alice: User) -> None:
    keep(alice)
    started = start(alice)
    some = dict(list(ANSWERS.items())[:2])
    for answers in (some, {}, some | {"old_neighbour": "Ada"}, ANSWERS | {"x": "y"}):
        answer = hand_in(started, answers)
        assert (answer.status, answer.code) == (400, "invalid_request")
    assert hand_in(started).status == 202
    assert len(sent("recovery_token")) == 1


def test_a_recovery_by_mail_accepts_no_security_answers(alice: User) -> None:
    keep(alice)
    assert hand_in(initiate(alice)).code == "recovery_gone"


def test_disabled_security_questions_cannot_be_set_or_used(alice: User, home: Organization) -> None:
    keep(alice)
    started = start(alice)
    Organization.objects.filter(pk=home.pk).update(recovery_questions_enabled=False)
    hand_in(started)
    assert sent("recovery_token") == []
    answer = keep(alice)
    assert (answer.status, answer.code) == (403, "recovery_questions_disabled")
    read = signed_in(alice).get(QUESTIONS)
    assert (read.status, read.body["enabled"]) == (200, False)
    # Removing them is always possible.
    assert keep(alice, {}).status == 200
    assert not SecurityAnswer.objects.exists()


def test_security_questions_are_disabled_by_default() -> None:
    assert Organization().recovery_questions_enabled is False


def test_answers_are_never_shown_or_stored_in_clear(alice: User) -> None:
    kept = keep(alice)
    assert kept.status == 200
    assert kept.body["answered"] == sorted(ANSWERS)
    shown = kept.raw.content.decode() + str(list(SecurityAnswer.objects.values()))
    for text in ANSWERS.values():
        assert text.lower() not in shown.lower()
    rows = SecurityAnswer.objects.values_list("encoded", flat=True)
    assert all(row.startswith("argon2$argon2id$") for row in rows)


@pytest.mark.parametrize(
    "answers",
    [
        {"dream_job": "Lion tamer"},
        ANSWERS | {"dream_job": "  a-b "},
        ANSWERS | {"dream_job": "the RED kite 1987"},
        {"dream_job": "a lion", "lost_thing": "a kite", "favourite_colour": "blue"},
        ANSWERS | {"old_neighbour": "Ada"},
        ANSWERS | {"dream_job": "x" * 257},
    ],
)
def test_weak_answers_are_refused(alice: User, answers: dict[str, str]) -> None:
    answer = keep(alice, answers)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert not SecurityAnswer.objects.exists()


def test_setting_answers_requires_a_recent_proof(holder: Holder) -> None:
    caller = signed_in(holder.user)
    for answer in (caller.get(QUESTIONS), caller.call("PUT", QUESTIONS, {"answers": {}})):
        assert (answer.status, answer.code) == (403, "step_up_required")


def test_each_user_has_separate_questions(alice: User, bob: User, charlie: User) -> None:
    keep(alice)
    for other in (bob, charlie):
        assert signed_in(other).get(QUESTIONS).body["answered"] == []
        hand_in(start(email=alice.email, org_id=charlie.organization_id))
    assert sent("recovery_token") == []


def test_too_many_concurrent_hashes_are_refused_with_503_and_not_counted(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(alice)
    started = start(alice)
    monkeypatch.setattr(passwords, "WAIT_S", 0.01)
    with patch.object(passwords._slots, "acquire", return_value=False):
        assert hand_in(started).code == "busy"
    assert hand_in(started).status == 202
    assert len(sent("recovery_token")) == 1
