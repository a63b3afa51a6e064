"""Staff, and only staff, enter the admin; it shows no secret."""

import pytest
import time_machine
from django.core.management import CommandError
from django.test import Client
from django.utils import timezone

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from tests import inbox
from tests.cast import PASSWORD, Caller, member, session_of
from tests.staff import EMAIL, create_staff, enter, staff_client
from tests.twofactor.holder import with_totp
from twofactor.models import Factor

pytestmark = pytest.mark.django_db


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Client:
    return staff_client(monkeypatch)


def test_staff_sees_every_list(inside: Client, alice: User) -> None:
    session_of(alice)
    AuditEvent.objects.create(tag="test:test:test", actor="alice@example.com")
    for path in [
        "",
        "accounts/user/",
        "accounts/session/",
        "organizations/invitation/",
        "audit/auditevent/",
        "oauth/identity/",
        "oauth/domain/",
        "environments/organization/",
        "environments/environment/",
        "twofactor/factor/",
        "twofactor/passkey/",
        "twofactor/trusteddevice/",
        "recovery/recovery/",
        "outbox/delivery/",
        "sqlgateway/database/",
        "sqlgateway/cluster/",
        f"accounts/user/{alice.pk}/change/",
        f"accounts/session/{Session.objects.first().pk}/change/",  # type: ignore[union-attr]  # made above
    ]:
        response = inside.get(f"/admin/{path}")
        assert response.status_code == 200, path
        assert b"argon2" not in response.content
        assert alice.password == "!" or alice.password.encode() not in response.content


def test_a_tenants_admin_is_not_staff(alice: User) -> None:
    client = Client()
    client.force_login(alice, backend="accounts.backends.StaffBackend")
    assert client.get("/admin/").status_code == 302


def test_the_admins_login_has_the_logins_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    create_staff(monkeypatch, "root@example.com")
    holder = with_totp(User.objects.get(email="root@example.com"))
    client = Client()
    # The clock is stopped: on a slow machine the wait would be over before it is tried.
    with time_machine.travel(timezone.now(), tick=False):
        for _ in range(6):
            enter(client, holder.code(), "wrong one")
        assert enter(client, holder.code()) == 200
        assert client.get("/admin/").status_code == 302


def test_guesses_at_the_admins_login_do_not_slow_the_api_login(home: Organization) -> None:
    owner = member(home, password=PASSWORD)
    client = Client()
    with time_machine.travel(timezone.now(), tick=False):
        for _ in range(20):
            guess = {"username": owner.email, "password": "a guess", "code": "000000"}
            client.post("/admin/login/", guess)
        answer = Caller().post("/v1/auth/login", {"email": owner.email, "password": PASSWORD})
    assert answer.status == 200


def test_who_enters_the_admin_or_is_refused_is_audited(
    monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    create_staff(monkeypatch, EMAIL)
    staff = User.objects.get(email=EMAIL)
    holder = with_totp(staff)
    client = Client()
    enter(client, holder.code(), "wrong one")
    enter(client, "000000")
    enter(client, holder.code())
    client.post("/admin/login/", {"username": alice.email, "password": PASSWORD, "code": "000000"})
    client.post("/admin/login/", {"username": "no@example.com", "password": "x", "code": "000000"})

    events = AuditEvent.objects.filter(tag="admin:session:create").order_by("id")
    assert [(event.actor, event.outcome, event.data.get("method")) for event in events] == [
        (EMAIL, "refused", None),
        (EMAIL, "refused", "totp"),
        (EMAIL, "success", "totp"),
        (alice.email, "refused", None),
        ("", "refused", None),
    ]
    assert events[2].organization_id == staff.organization_id
    assert events[2].address == "127.0.0.1"


def test_the_password_alone_does_not_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    create_staff(monkeypatch, "root@example.com")
    client = Client()
    for code in ["", "123456", "ABCD-EFGH-JKMN-PQRS"]:
        assert enter(client, code) == 200
    assert client.get("/admin/").status_code == 302
    holder = with_totp(User.objects.get(email="root@example.com"))
    for code in ["", holder.wrong_code(), "ABCD-EFGH-JKMN-PQRS"]:
        assert enter(client, code) == 200
        assert client.get("/admin/").status_code == 302
    assert enter(client, holder.backup_codes[0]) == 302
    assert client.get("/admin/").status_code == 200


def test_a_method_the_policy_forbids_does_not_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    create_staff(monkeypatch, "root@example.com")
    user = User.objects.get(email="root@example.com")
    holder = with_totp(user)
    allowed = Organization.objects.filter(pk=user.organization_id)
    allowed.update(mfa_allowed_methods=["totp"])
    assert enter(Client(), holder.backup_codes[0]) == 200
    assert enter(Client(), holder.code()) == 302


def test_the_admin_session_of_another_user_is_not_proven(inside: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    inside.force_login(alice, backend="accounts.backends.StaffBackend")
    assert inside.get("/admin/").status_code == 302


def test_factors_are_shown_without_secrets_and_reset_with_a_reason(
    inside: Client, alice: User
) -> None:
    holder = with_totp(alice)
    factor = Factor.objects.get(user=alice, method="totp")
    page = inside.get(f"/admin/twofactor/factor/{factor.pk}/change/")
    assert page.status_code == 200
    assert factor.secret.encode() not in page.content
    assert holder.seed.encode() not in page.content
    form = {"action": "reset_factors", "_selected_action": str(alice.pk), "confirmed": "1"}
    inside.post("/admin/accounts/user/", form | {"reason": " "})
    assert Factor.objects.filter(user=alice).exists()
    inside.post("/admin/accounts/user/", form | {"reason": "lost phone"})
    assert not Factor.objects.filter(user=alice).exists()
    event = AuditEvent.objects.get(tag="admin:member:reset_factors")
    assert event.data == {
        "member": str(alice.pk),
        "email": "alice@example.com",
        "factors": 2,
        "reason": "lost phone",
    }
    assert "factors_reset" in inbox.notices_to("alice@example.com")


def test_a_disabled_member_of_staff_is_signed_out_immediately(inside: Client) -> None:
    User.objects.filter(email="root@example.com").update(is_active=False)
    assert inside.get("/admin/").status_code == 302


def test_an_existing_user_is_promoted_and_keeps_the_password(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_staff(monkeypatch, "ALICE@example.com", "never read")
    after = User.objects.get(pk=alice.pk)
    assert (after.is_staff, after.password) == (True, alice.password)


@pytest.mark.parametrize(
    ("email", "password"), [("nonsense", PASSWORD), ("root@example.com", "short")]
)
def test_bad_input_is_reported_and_creates_nothing(
    db: None, monkeypatch: pytest.MonkeyPatch, email: str, password: str
) -> None:
    with pytest.raises(CommandError):
        create_staff(monkeypatch, email, password)
    assert not User.objects.exists()
