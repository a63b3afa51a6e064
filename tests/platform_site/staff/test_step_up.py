"""Actions in the admin take a second factor proven in the last fifteen minutes."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth import HASH_SESSION_KEY
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from platform_site.staff.login import PROVEN_AT
from tests.cast import PASSWORD
from tests.staff import EMAIL, staff_inside
from tests.twofactor.holder import Holder, with_totp
from tests.twofactor.webauthn.authenticator import ORIGIN, Authenticator
from tests.twofactor.webauthn.holder import with_passkey
from twofactor.models import Factor

pytestmark = pytest.mark.django_db
USERS = "/admin/accounts/user/"
PASSKEY = "/admin/login/passkey/"
ASKED = "Prove your second factor again"
FIELD = 'name="proof_code"'


@pytest.fixture
def old(inside: Client) -> Client:
    """Return a browser whose session of the admin is 16 minutes old."""
    return age(inside)


@pytest.fixture
def root(inside: Client) -> Holder:
    """Return the member of staff, with an authenticator app."""
    return with_totp(User.objects.get(email=EMAIL))


def age(browser: Client) -> Client:
    session = browser.session
    session[PROVEN_AT] = int(timezone.now().timestamp()) - 16 * 60
    session.save()
    return browser


def disable(browser: Client, user: User, **more: str) -> str:
    sent = {"action": "disable", "_selected_action": [str(user.pk)], "confirmed": "1", **more}
    return browser.post(USERS, {"reason": "asked by phone", **sent}, follow=True).content.decode()


def proofs() -> list[tuple[str, Any]]:
    found = AuditEvent.objects.filter(tag="admin:session:prove").order_by("id")
    return [(event.outcome, event.data["method"]) for event in found]


def is_active(user: User) -> bool:
    user.refresh_from_db()
    return user.is_active


def test_an_action_in_a_new_session_asks_for_a_reason_only(inside: Client, alice: User) -> None:
    assert FIELD not in disable(inside, alice, reason="")
    assert "done for 1 of 1" in disable(inside, alice)


def test_an_action_in_an_older_session_takes_a_code(old: Client, root: Holder, alice: User) -> None:
    page = disable(old, alice)
    assert ASKED in page
    assert FIELD in page
    # What was typed is kept.
    assert ">asked by phone</textarea>" in page
    assert is_active(alice)
    assert "done for 1 of 1" in disable(old, alice, proof_code=root.code())
    assert not is_active(alice)
    assert proofs() == [("success", "totp")]


def test_the_proof_is_good_for_fifteen_minutes(
    old: Client, root: Holder, alice: User, bob: User
) -> None:
    disable(old, alice, proof_code=root.code())
    assert "done for 1 of 1" in disable(old, bob)
    User.objects.filter(pk=bob.pk).update(is_active=True)
    assert ASKED in disable(age(old), bob)
    assert is_active(bob)


def test_a_wrong_code_is_counted_and_changes_nothing(
    old: Client, root: Holder, alice: User
) -> None:
    assert "The code is wrong." in disable(old, alice, proof_code=root.wrong_code())
    assert is_active(alice)
    assert Factor.objects.get(user=root.user, method="totp").failures == 1
    assert proofs() == [("refused", "totp")]


def test_a_code_is_not_used_up_without_a_reason(old: Client, root: Holder, alice: User) -> None:
    code = root.code()
    assert "A reason is required" in disable(old, alice, reason=" ", proof_code=code)
    assert "done for 1 of 1" in disable(old, alice, proof_code=code)


def test_a_backup_code_is_a_proof_too(old: Client, root: Holder, alice: User) -> None:
    assert "done for 1 of 1" in disable(old, alice, proof_code=root.backup_codes[0])
    assert proofs() == [("success", "backup_codes")]


def test_a_form_takes_it_as_well(old: Client, root: Holder, alice: User) -> None:
    path = f"/admin/sqlgateway/organizationlimits/{alice.organization_id}/set-limits/"
    body = {"environments": "7", "seen": "{}", "confirmed": "1", "reason": "ticket 7"}
    page = old.post(path, body, follow=True).content.decode()
    assert "Done" not in page
    assert not AuditEvent.objects.filter(tag="admin:quota:set").exists()
    assert proofs() == []


def test_looking_takes_no_further_proof(old: Client, alice: User) -> None:
    assert old.get(f"{USERS}{alice.pk}/change/").status_code == 200


@pytest.fixture
def key(settings: Settings, inside: Client) -> Authenticator:
    """Return a passkey of the member of staff."""
    settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=(ORIGIN,), webauthn_rp_id="")
    return with_passkey(User.objects.get(email=EMAIL)).key


def confirm(browser: Client, key: Authenticator) -> int:
    """Prove a passkey as the page's script does; return the status."""
    begun = post(browser, "start", {}).json()
    credential = key.get(begun["request_options"])
    body = {"challenge_id": begun["challenge_id"], "credential": credential}
    return int(post(browser, "confirm", body).status_code)


def post(browser: Client, step: str, body: dict[str, Any]) -> Any:
    sent = json.dumps(body)
    return browser.post(f"{PASSKEY}{step}/", sent, content_type="application/json")


def test_a_passkey_is_a_proof_too(old: Client, key: Authenticator, alice: User) -> None:
    assert ASKED in disable(old, alice)
    assert confirm(old, key) == 200
    assert "done for 1 of 1" in disable(old, alice)
    assert proofs() == [("success", "webauthn")]


def test_a_passkey_of_another_member_of_staff_proves_nothing(
    old: Client, key: Authenticator, alice: User
) -> None:
    other = age(staff_inside("other@example.com"))
    assert confirm(other, key) == 401
    assert ASKED in disable(other, alice)
    assert confirm(Client(), key) == 401


def test_a_password_is_changed_in_the_console_only(inside: Client) -> None:
    root = User.objects.get(email=EMAIL)
    root.set_password(PASSWORD)
    root.save()
    # Django's session ends with another password hash.
    session = inside.session
    session[HASH_SESSION_KEY] = root.get_session_auth_hash()
    session.save()
    form = {"old_password": PASSWORD, "new_password1": "x", "new_password2": "x"}
    answer = inside.post("/admin/password_change/", form)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/console/security")
    assert User.objects.get(email=EMAIL).password == root.password
