"""Django's own commands that read tenants' rows: replaced, or refused with what to use instead."""

import io

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from audit.models import AuditEvent
from tests import inbox
from tests.cast import PASSWORD, Caller, signed_in
from tests.commands import facts, refused, run

pytestmark = pytest.mark.django_db
NEW = "another horse, another battery"


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n"))


def login(password: str) -> int:
    return (
        Caller().post("/v1/auth/login", {"email": "alice@example.com", "password": password}).status
    )


def test_an_operator_sets_a_password_and_the_user_is_told(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, PASSWORD)
    run("changepassword", "alice@example.com")
    caller = signed_in(alice)
    typed(monkeypatch, NEW)

    said = facts("changepassword", "alice@example.com")

    assert (said["user_id"], said["sessions"]) == (str(alice.pk), 1)
    assert caller.get("/v1/whoami").status == 401
    assert (login(PASSWORD), login(NEW)) == (401, 200)
    assert "password_changed" in inbox.notices_to("alice@example.com")
    event = AuditEvent.objects.filter(tag="cli:password:update").latest("at")
    assert (event.organization_id, event.data["member"]) == (alice.organization_id, str(alice.pk))


def test_a_weak_password_and_an_unknown_user_change_nothing(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, PASSWORD)
    run("changepassword", "alice@example.com")
    typed(monkeypatch, "short")
    assert refused("changepassword", "alice@example.com")[1]["code"] == "invalid_request"
    assert refused("changepassword", "nobody@example.com")[1]["code"] == "user_not_found"
    typed(monkeypatch, NEW)
    assert facts("changepassword", "alice@example.com", "--dry-run")["dry_run"] is True
    assert (login(PASSWORD), login(NEW)) == (200, 401)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("dumpdata", "manage.py backup"),
        ("createsuperuser", "manage.py createstaff"),
    ],
)
def test_a_command_that_is_not_offered_names_what_is(
    alice: User, name: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match=instead):
        call_command(name)
    assert "alice" not in capsys.readouterr().out
