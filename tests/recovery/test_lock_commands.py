"""Operators lock a user out and let one in again."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import ApiKey, Session, User
from audit.models import AuditEvent
from common.models import Throttle
from tests import inbox
from tests.accounts.api_keys.support import holder
from tests.cast import PASSWORD, Caller, signed_in
from tests.commands import facts, help_of, misused, refused, run
from tests.twofactor.holder import with_totp
from twofactor.models import Factor, TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db
WHY = ("--reason", "reported stolen")


def log_in(password: str = PASSWORD) -> Any:
    """Sign in as Alice."""
    return Caller().post("/v1/auth/login", {"email": "alice@example.com", "password": password})


def events(tag: str) -> list[dict[str, Any]]:
    """Return the data of the audit events with a tag."""
    return [event.data for event in AuditEvent.objects.filter(tag=tag).order_by("id")]


@pytest.mark.parametrize("name", ["lockuser", "unlockuser"])
def test_the_reason_is_required(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--reason" in help_of(name)
    assert misused(name, "alice@example.com") == 2
    for reason in ("  ", "x" * 301, "two\nlines"):
        assert misused(name, "alice@example.com", "--reason", reason) == 2
    assert "1 to 300 printable characters" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["lockuser", "unlockuser"])
def test_an_outsider_is_refused(name: str) -> None:
    assert refused(name, "nobody@example.com", *WHY)[1]["code"] == "user_not_found"
    assert refused(name, "", *WHY)[1]["code"] == "user_not_found"


def test_a_locked_user_has_nothing_left_that_lets_in(alice: User) -> None:
    callers = [signed_in(alice), signed_in(alice, "sandbox")]
    machine = holder(alice)
    assert machine.get("/v1/environments").status == 200
    devices.trust(alice, "phone", now=timezone.now())

    locked = facts("lockuser", "ALICE@example.com", *WHY)

    assert locked == {
        "user_id": str(alice.pk),
        "email": "alice@example.com",
        "org_id": alice.organization_id,
        "locked": True,
        "changed": True,
        "sessions": 3,
    }
    assert {caller.get("/v1/whoami").status for caller in callers} == {401}
    assert machine.get("/v1/environments").status == 401
    assert not TrustedDevice.objects.filter(user=alice).exists()
    assert log_in().code == "invalid_credentials"
    assert inbox.notices_to("alice@example.com").count("account_disabled") == 1
    assert events("cli:user:lock") == [
        {
            "member": str(alice.pk),
            "email": "alice@example.com",
            "reason": "reported stolen",
            "sessions": 3,
        }
    ]
    assert facts("lockuser", "alice@example.com", *WHY)["changed"] is False
    assert len(events("cli:user:lock")) == 1
    assert "was locked before" in run("lockuser", "alice@example.com", *WHY)


def test_an_unlocked_user_signs_in_and_its_api_keys_stay_ended(alice: User) -> None:
    machine = holder(alice)
    facts("lockuser", "alice@example.com", *WHY)

    unlocked = facts("unlockuser", "alice@example.com", "--reason", "proven by phone")

    assert (unlocked["changed"], unlocked["enabled"]) == (True, True)
    assert log_in().status == 200
    assert machine.get("/v1/environments").status == 401
    assert ApiKey.objects.get(creator=alice).revoked_at is not None
    assert inbox.notices_to("alice@example.com").count("account_enabled") == 1
    [event] = events("cli:user:unlock")
    assert (event["enabled"], event["reason"]) == (True, "proven by phone")


def test_failed_sign_ins_are_forgotten_as_in_the_admin(alice: User) -> None:
    with_totp(alice)
    number = Factor.objects.filter(user=alice).update(failures=100)
    log_in("wrong")
    # As after many of them: a right password is not heard for a while.
    Throttle.objects.update(blocked_until=timezone.now() + timedelta(minutes=15))
    assert log_in().code == "invalid_credentials"

    unlocked = facts("unlockuser", "alice@example.com", *WHY)

    assert unlocked["forgotten"] == {"passwords": True, "factors": number}
    assert (unlocked["changed"], unlocked["enabled"]) == (True, False)
    assert log_in().status == 200
    assert set(Factor.objects.filter(user=alice).values_list("failures", flat=True)) == {0}
    # Nothing of the account itself changed, so that there is nothing to mail.
    assert "account_enabled" not in inbox.notices_to("alice@example.com")
    assert "was not locked" in run("unlockuser", "alice@example.com", *WHY)
    assert len(events("cli:user:unlock")) == 1


def test_a_dry_run_keeps_nothing(alice: User) -> None:
    caller = signed_in(alice)
    log_in("wrong")

    locked = facts("lockuser", "alice@example.com", *WHY, "--dry-run")
    unlocked = facts("unlockuser", "alice@example.com", *WHY, "--dry-run")

    assert (locked["changed"], locked["sessions"], locked["dry_run"]) == (True, 1, True)
    assert (unlocked["changed"], unlocked["dry_run"]) == (True, True)
    assert caller.get("/v1/whoami").status == 200
    assert Session.objects.filter(user=alice, ended_at=None).count() == 1
    assert Throttle.objects.exists()
    assert not events("cli:user:lock") + events("cli:user:unlock")
    assert inbox.notices_to("alice@example.com") == []
