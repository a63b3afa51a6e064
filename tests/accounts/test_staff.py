"""Staff, and only staff, enter the admin; it shows no secret."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import AuditEvent, Session, User
from tests.cast import PASSWORD, session_of

pytestmark = pytest.mark.django_db


def create_staff(monkeypatch: pytest.MonkeyPatch, email: str, password: str = PASSWORD) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
    call_command("createstaff", email, stdout=io.StringIO())


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Client:
    create_staff(monkeypatch, "root@example.com")
    client = Client()
    form = {"username": "root@example.com", "password": PASSWORD}
    assert client.post("/admin/login/?next=/admin/", form).status_code == 302
    return client


def test_staff_sees_every_list(inside: Client, alice: User) -> None:
    session_of(alice)
    AuditEvent.objects.create(tag="test:test:test", actor="alice@example.com")
    for path in [
        "",
        "accounts/user/",
        "accounts/session/",
        "accounts/auditevent/",
        "environments/organization/",
        "environments/environment/",
        f"accounts/user/{alice.pk}/change/",
        f"accounts/session/{Session.unscoped.first().pk}/change/",  # type: ignore[union-attr]  # made above
    ]:
        response = inside.get(f"/admin/{path}")
        assert response.status_code == 200, path
        assert b"argon2" not in response.content
        assert alice.password == "!" or alice.password.encode() not in response.content


def test_a_tenants_admin_is_no_staff(alice: User) -> None:
    client = Client()
    client.force_login(alice, backend="accounts.backends.StaffBackend")
    assert client.get("/admin/").status_code == 302


def test_the_admins_login_has_the_logins_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    create_staff(monkeypatch, "root@example.com")
    client = Client()
    for _ in range(6):
        client.post("/admin/login/", {"username": "root@example.com", "password": "wrong one"})
    form = {"username": "root@example.com", "password": PASSWORD}
    assert client.post("/admin/login/", form).status_code == 200
    assert client.get("/admin/").status_code == 302


def test_a_disabled_member_of_staff_is_out_at_once(inside: Client) -> None:
    User.unscoped.filter(email="root@example.com").update(is_active=False)
    assert inside.get("/admin/").status_code == 302


def test_an_existing_user_is_promoted_and_keeps_the_password(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_staff(monkeypatch, "ALICE@example.com", "never read")
    after = User.unscoped.get(pk=alice.pk)
    assert (after.is_staff, after.password) == (True, alice.password)


@pytest.mark.parametrize(
    ("email", "password"), [("nonsense", PASSWORD), ("root@example.com", "short")]
)
def test_bad_input_is_told_and_makes_nothing(
    db: None, monkeypatch: pytest.MonkeyPatch, email: str, password: str
) -> None:
    with pytest.raises(CommandError):
        create_staff(monkeypatch, email, password)
    assert not User.unscoped.exists()
