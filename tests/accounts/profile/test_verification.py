"""An address is proven by the code that was mailed to it, in a session of its user."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from accounts.mailed_secrets import canonical_code
from accounts.models import MailboxProof, User
from accounts.signin import mailbox_proofs
from audit.models import AuditEvent
from outbox.models import Delivery
from outbox.tasks import deliver
from tests import inbox
from tests.accounts.profile.support import (
    PATH,
    begin_change,
    mailed_code,
    signed_up,
    user_of,
    verify,
)
from tests.cast import PASSWORD, Caller, signed_in
from tests.parallel import at_once
from tests.twofactor.holder import as_typed

pytestmark = pytest.mark.django_db


def other_code(code: str) -> str:
    """Return a code that is well-formed and wrong."""
    return ("2" if code[0] != "2" else "3") + code[1:]


def test_sign_up_mails_a_code_and_reports_an_unverified_address() -> None:
    body = {"email": "alice@example.com", "password": PASSWORD}
    answer = Caller().post("/v1/auth/signup", body)
    assert answer.body["email_verified"] is False
    caller = Caller().holding(answer)
    assert caller.get("/v1/whoami").body["email_verified"] is False
    login = Caller().post("/v1/auth/login", body).body
    assert login["email_verified"] is False
    (mail,) = inbox.messages("mail")
    assert (mail["to"], mail["template"]) == ("alice@example.com", "email_verification")
    assert mail["context"]["link"].endswith(f"/console/account#code={mailed_code()}")


def test_the_platform_works_before() -> None:
    caller = signed_up()
    assert caller.get("/v1/environments").status == 200
    assert caller.post("/v1/environments", {"id": "stage"}).status == 201
    assert caller.get("/v1/members").status == 200


def test_the_code_proves_the_address_once() -> None:
    caller = signed_up()
    answer = verify(caller, mailed_code())
    assert answer.status == 200
    assert answer.body == {
        "email": "alice@example.com",
        "email_verified": True,
        "pending_email": None,
        "code_expires_at": None,
    }
    assert caller.get("/v1/whoami").body["email_verified"] is True
    body = {"email": "alice@example.com", "password": PASSWORD}
    assert Caller().post("/v1/auth/login", body).body["email_verified"] is True
    assert (verify(caller, mailed_code()).status, verify(caller, mailed_code()).code) == (
        410,
        "email_code_gone",
    )
    assert AuditEvent.objects.filter(tag="api:email:verify").count() == 1


def test_a_code_is_typed_by_people() -> None:
    caller = signed_up()
    assert verify(caller, as_typed(mailed_code())).status == 200


@pytest.mark.parametrize("code", ["1234", "ABCD-EFG", "ABCD-EFGHJ", "UUUU-UUUU", "ÄÄÄÄ-ÄÄÄÄ"])
def test_what_can_be_no_code_is_not_counted(code: str) -> None:
    caller = signed_up()
    for _ in range(6):
        answer = verify(caller, code)
        assert (answer.status, answer.code) == (400, "email_code_rejected")
        assert answer.body["errors"][0]["code"] == "malformed"
    assert verify(caller, mailed_code()).status == 200


def test_five_wrong_codes_use_the_right_one_up() -> None:
    caller = signed_up()
    code = mailed_code()
    for _ in range(5):
        answer = verify(caller, other_code(code))
        assert (answer.status, answer.code) == (400, "email_code_rejected")
        assert answer.body["errors"][0] == {
            "field": "code",
            "code": "wrong",
            "message": "This is not the code that was mailed last.",
        }
    assert verify(caller, code).code == "email_code_gone"


def test_a_code_is_good_for_a_day() -> None:
    caller = signed_up()
    code = mailed_code()
    with time_machine.travel(timezone.now() + timedelta(days=1, seconds=1)):
        assert verify(signed_in(user_of()), code).code == "email_code_gone"
    assert Delivery.objects.get().expires_at == MailboxProof.objects.get().expires_at
    assert caller.get(PATH).body["code_expires_at"]


def test_a_code_works_for_its_own_user_only(bob: User) -> None:
    """Only a session of the account can use the link of its owner's mailbox."""
    caller = signed_up()
    code = mailed_code()
    signed_up("bob2@example.com")
    stranger = signed_in(user_of("bob2@example.com"))
    assert verify(stranger, code).code == "email_code_rejected"
    assert verify(signed_in(bob), code).code == "email_code_gone"
    assert Caller().post(f"{PATH}/verify", {"code": code}).code == "not_authenticated"
    assert verify(caller, code).status == 200


def test_a_get_does_not_use_up_the_token() -> None:
    caller = signed_up()
    for path in (PATH, f"{PATH}/verify", f"{PATH}/verify?code={mailed_code()}", "/console/account"):
        caller.get(path)
    assert caller.get("/v1/whoami").body["email_verified"] is False
    assert verify(caller, mailed_code()).status == 200


def test_no_code_is_kept_or_shown() -> None:
    caller = signed_up()
    code = mailed_code()
    shown = str(MailboxProof.objects.values()) + str(AuditEvent.objects.values())
    shown += caller.get(PATH).raw.content.decode()
    assert code not in shown
    assert code.replace("-", "") not in shown


def test_a_new_code_voids_the_one_before() -> None:
    caller = signed_up()
    first = mailed_code()
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        answer = caller.post(f"{PATH}/resend")
        assert (answer.status, answer.body["email_verified"]) == (202, False)
        second = mailed_code()
        assert first != second
        assert verify(caller, first).code == "email_code_rejected"
        assert verify(caller, second).status == 200


def test_a_new_code_is_mailed_once_a_minute() -> None:
    caller = signed_up()
    answer = caller.post(f"{PATH}/resend")
    assert (answer.status, answer.code) == (429, "mailed_too_often")
    assert 0 < int(answer.headers["Retry-After"]) <= 61
    assert len(inbox.messages()) == 1


def test_a_mailbox_gets_a_limited_number_of_mails_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 2)
    # At noon: no day ends meanwhile.
    with time_machine.travel(timezone.now().replace(hour=12), tick=False) as clock:
        caller = signed_up()
        for _ in range(2):
            clock.shift(timedelta(seconds=61))
            assert caller.post(f"{PATH}/resend").status == 202
        clock.shift(timedelta(seconds=61))
        answer = caller.post(f"{PATH}/resend")
    assert (answer.status, answer.code) == (429, "mailed_too_often")


def test_changes_by_others_do_not_keep_an_owner_from_verifying_the_address(
    charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 2)
    caller = signed_up()
    for _ in range(2):
        assert begin_change(signed_in(charlie), "alice@example.com").status == 202
    assert begin_change(signed_in(charlie), "alice@example.com").code == "mailed_too_often"
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert caller.post(f"{PATH}/resend").status == 202


def test_no_code_is_sent_for_a_verified_address() -> None:
    caller = signed_up()
    verify(caller, mailed_code())
    answer = caller.post(f"{PATH}/resend")
    assert (answer.status, answer.code) == (409, "email_verified")


def test_after_a_day_a_new_code_can_be_asked_for() -> None:
    caller = signed_up()
    MailboxProof.objects.update(expires_at=timezone.now())
    assert caller.get(PATH).body["code_expires_at"] is None
    assert caller.post(f"{PATH}/resend").status == 202
    assert verify(caller, mailed_code()).status == 200


def test_the_mail_names_the_code_and_the_page(mailoutbox: list[Any]) -> None:
    signed_up()
    code = mailed_code()
    deliver(str(Delivery.objects.get().pk))
    (mail,) = mailoutbox
    assert code in mail.body
    assert "24 hours" in mail.body
    assert code not in mail.subject
    assert not Delivery.objects.exclude(payload="").exists()


@pytest.mark.django_db(transaction=True)
def test_concurrent_wrong_codes_are_all_counted() -> None:
    caller = signed_up()
    code = mailed_code()
    answers = at_once(*(lambda: verify(caller, other_code(code)) for _ in range(8)))
    codes = sorted(answer.code for answer in answers)
    assert codes == ["email_code_gone"] * 3 + ["email_code_rejected"] * 5
    assert verify(caller, code).code == "email_code_gone"


def test_what_can_no_longer_be_answered_is_forgotten() -> None:
    signed_up()
    assert mailbox_proofs.delete_old(now=timezone.now()) == 0
    assert mailbox_proofs.delete_old(now=timezone.now() + timedelta(days=2)) == 1


@pytest.mark.parametrize(
    ("typed", "code"),
    [("abcd efgh", "ABCD-EFGH"), ("O1Il-0000", "0111-0000"), ("", ""), ("ABCDEFGHJ", "")],
)
def test_how_codes_are_spelled(typed: str, code: str) -> None:
    assert canonical_code(typed) == code
