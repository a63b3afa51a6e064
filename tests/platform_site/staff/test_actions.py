"""What staff do with users: with a reason, done once, notified by mail and recorded."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from accounts import notices
from accounts.models import Session, User
from audit.models import AuditEvent
from organizations import staff_access
from outbox.models import Delivery
from tests import inbox
from tests.cast import Caller, signed_in
from tests.commands import facts
from tests.organizations.support import accept, invited
from tests.staff import EMAIL, create_staff, enter, staff_inside
from tests.twofactor.holder import with_totp
from twofactor.models import Factor

pytestmark = pytest.mark.django_db
USERS = "/admin/accounts/user/"


def form(action: str, *users: User) -> dict[str, Any]:
    """Return what the list sends."""
    return {"action": action, "_selected_action": [str(user.pk) for user in users]}


def do(browser: Client, action: str, *users: User, reason: str = "asked by phone") -> str:
    """Confirm an action; return the page that follows."""
    sent = form(action, *users) | {"confirmed": "1", "reason": reason}
    return browser.post(USERS, sent, follow=True).content.decode()


def events(action: str) -> list[dict[str, Any]]:
    """Return the data of the audit events of an action."""
    found = AuditEvent.objects.filter(tag=f"admin:{action}").order_by("id")
    return [event.data for event in found]


def test_an_action_asks_first_and_needs_a_reason(inside: Client, alice: User) -> None:
    page = inside.post(USERS, form("disable", alice)).content.decode()
    assert "alice@example.com" in page
    assert 'name="reason"' in page
    assert "A reason is required" in do(inside, "disable", alice, reason="  ")
    alice.refresh_from_db()
    assert alice.is_active


def test_a_user_is_disabled_once_and_enabled_again(inside: Client, alice: User) -> None:
    caller = signed_in(alice)
    assert "done for 1 of 1" in do(inside, "disable", alice)
    assert caller.get("/v1/whoami").status == 401
    assert "nothing to do" in do(inside, "disable", alice)
    assert inbox.notices_to("alice@example.com").count("account_disabled") == 1

    do(inside, "enable", alice)

    alice.refresh_from_db()
    assert alice.is_active
    member = {"member": str(alice.pk), "email": "alice@example.com"}
    assert events("user:disable") == [{**member, "reason": "asked by phone"}]
    assert len(events("user:enable")) == 1


def test_what_was_done_is_said_where_the_database_fails_in_the_middle(
    inside: Client, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = staff_access.set_active

    def fail_for_alice(user: User, **more: Any) -> bool:
        if user.pk == alice.pk:
            raise OperationalError("deadlock detected")
        return wanted(user, **more)

    monkeypatch.setattr(staff_access, "set_active", fail_for_alice)
    page = do(inside, "disable", alice, bob)
    assert "done for 1 of 2" in page
    assert "alice@example.com: The database did not take it." in page
    assert [event["member"] for event in events("user:disable")] == [str(bob.pk)]


def test_a_disabled_admin_does_not_come_back_by_an_own_invitation(
    inside: Client, alice: User
) -> None:
    token = invited(alice, "alice2@example.com", roles=["admin"])
    do(inside, "disable", alice)
    assert accept(token).code == "invitation_gone"


def test_sessions_are_ended_and_the_event_names_who_did_it(inside: Client, alice: User) -> None:
    callers = [signed_in(alice), signed_in(alice, "sandbox")]
    do(inside, "end_sessions", alice)
    do(inside, "end_sessions", alice)
    assert {caller.get("/v1/whoami").status for caller in callers} == {401}
    event = AuditEvent.objects.get(tag="admin:session:delete")
    assert (event.actor, event.organization_id) == (EMAIL, alice.organization_id)
    assert event.data["ended"] == 2


def end_sessions_by_staff(inside: Client, user: User) -> None:
    assert "done for 1 of 1" in do(inside, "end_sessions", user)


def reset_factors_by_staff(inside: Client, user: User) -> None:
    with_totp(user)
    assert "done for 1 of 1" in do(inside, "reset_factors", user)


def end_everybodys_sessions(_inside: Client, _user: User) -> None:
    facts("endsessions", "--everybody")


def end_own_other_sessions(_inside: Client, user: User) -> None:
    assert signed_in(user).call("DELETE", "/v1/auth/sessions").status == 200


@pytest.mark.parametrize(
    "end",
    [
        end_sessions_by_staff,
        reset_factors_by_staff,
        end_everybodys_sessions,
        end_own_other_sessions,
    ],
)
def test_sessions_of_the_admin_end_with_all_others(
    inside: Client, end: Callable[[Client, User], None]
) -> None:
    colleague = staff_inside("second@example.com")
    assert colleague.get("/admin/").status_code == 200
    end(inside, User.objects.get(email="second@example.com"))
    assert colleague.get("/admin/").status_code == 302


def test_staff_enter_again_after_their_sessions_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    create_staff(monkeypatch, EMAIL)
    holder = with_totp(User.objects.get(email=EMAIL))
    facts("endsessions", "--everybody")
    browser = Client()
    assert enter(browser, holder.code()) == 302
    assert browser.get("/admin/").status_code == 200


def test_a_user_is_unlocked(inside: Client, alice: User) -> None:
    for _ in range(3):
        Caller().post("/v1/auth/login", {"email": alice.email, "password": "wrong"})
    with_totp(alice)
    Factor.objects.filter(user=alice).update(failures=100)

    do(inside, "unlock", alice)

    assert set(Factor.objects.filter(user=alice).values_list("failures", flat=True)) == {0}
    assert "nothing to do" in do(inside, "unlock", alice)
    assert len(events("user:unlock")) == 1


def test_staff_cannot_disable_themselves_or_reset_their_own_factors(inside: Client) -> None:
    root = User.objects.get(email=EMAIL)
    with_totp(root)
    for action in ("disable", "reset_factors"):
        assert "Another member of staff" in do(inside, action, root)
    root.refresh_from_db()
    assert root.is_active
    assert Factor.objects.filter(user=root).exists()


def test_the_page_of_a_user_offers_the_actions(inside: Client, alice: User) -> None:
    page = inside.get(f"{USERS}{alice.pk}/change/").content.decode()
    for name in ("disable", "enable", "unlock", "end_sessions", "reset_factors"):
        assert f'value="{name}"' in page
    assert "impersonat" not in page.lower()


def test_staff_that_may_only_look_sees_no_action_and_cannot_send_one(alice: User) -> None:
    browser = staff_inside()
    User.objects.filter(email=EMAIL).update(is_view_only=True)
    signed_in(alice)
    for path in (USERS, f"{USERS}{alice.pk}/change/", "/admin/"):
        page = browser.get(path)
        assert page.status_code == 200
        assert 'value="disable"' not in page.content.decode()
    for action in ("disable", "end_sessions", "reset_factors", "unlock", "enable"):
        sent = form(action, alice) | {"confirmed": "1", "reason": "x"}
        assert browser.post(USERS, sent).status_code == 403
    assert Session.objects.filter(user=alice, ended_at=None).exists()
    assert not AuditEvent.objects.filter(tag__startswith="admin:").exists()


def test_at_most_a_hundred_rows_are_acted_on(inside: Client, alice: User) -> None:
    User.objects.bulk_create(
        User(organization=alice.organization, email=f"u{n}@example.com") for n in range(101)
    )
    sent = form("disable", alice) | {"select_across": "1", "confirmed": "1", "reason": "x"}
    page = inside.post(USERS, sent, follow=True).content.decode()
    assert "At most 100 rows" in page
    assert User.objects.filter(is_active=False).count() == 0


MAILS = "/admin/outbox/delivery/"


def failed_mail(user: User) -> Delivery:
    """Return a mail to a user that could not be sent."""
    row = notices.queue_notice(user, "account_enabled", by="platform staff")
    Delivery.objects.filter(pk=row.pk).update(
        state="failed", attempts=10, error="mail_refused", finished_at=timezone.now()
    )
    return row


def retry(browser: Client, row: Delivery, **more: str) -> str:
    """Send the action of the list of mails."""
    sent = {"action": "retry", "_selected_action": [str(row.pk)], **more}
    return browser.post(MAILS, sent, follow=True).content.decode()


def test_a_failed_mail_is_sent_again_once(inside: Client, alice: User) -> None:
    row = failed_mail(alice)
    listed = inside.get(f"{MAILS}?state__exact=failed").content.decode()
    assert "Send again" in listed
    page = retry(inside, row)
    assert 'name="reason"' in page
    assert "mail_refused" in page
    confirmed = {"confirmed": "1", "reason": "the relay is back"}
    assert "done for 1 of 1" in retry(inside, row, **confirmed)
    row.refresh_from_db()
    assert (row.state, row.attempts_allowed) == ("queued", 20)
    assert "nothing to do" in retry(inside, row, **confirmed)
    (event,) = AuditEvent.objects.filter(tag="admin:delivery:retry")
    assert event.organization_id == alice.organization_id
    assert event.data["reason"] == "the relay is back"


def test_a_mail_whose_content_is_gone_stays(inside: Client, alice: User) -> None:
    row = failed_mail(alice)
    Delivery.objects.update(payload="")
    page = retry(inside, row, confirmed="1", reason="x")
    assert "its content is gone" in page
    assert Delivery.objects.get(pk=row.pk).state == "failed"
    assert not AuditEvent.objects.filter(tag="admin:delivery:retry").exists()
