"""In a browser: staff enter the admin with a passkey alone, and tenants do not."""

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from accounts.models import User
from audit.models import AuditEvent
from platform_site.staff.login import PROVEN_AT
from tests.cast import member, organization
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, sign_out, sign_up
from tests.console.settings.test_browser_passkeys import add_passkey
from twofactor.models import Factor

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def holder(visitor: Visitor) -> Visitor:
    """Return a signed-out user who has a passkey and no other factor."""
    visitor.without_autofill()
    visitor.virtual_authenticator()
    sign_up(visitor)
    add_passkey(visitor)
    sign_out(visitor)
    assert [factor.method for factor in Factor.objects.exclude(method="backup_codes")] == [
        "webauthn"
    ]
    return visitor


def press(visitor: Visitor) -> None:
    """Sign in with the passkey on the admin's page."""
    visitor.page.goto(f"{visitor.base}/admin/accounts/user/")
    visitor.page.get_by_role("button", name="Sign in with a passkey").click()


def test_staff_with_a_passkey_alone_get_in_and_to_the_page_they_wanted(holder: Visitor) -> None:
    User.objects.filter(email=EMAIL).update(is_staff=True)
    press(holder)
    expect(holder.page).to_have_url(f"{holder.base}/admin/accounts/user/")
    expect(holder.page.get_by_role("link", name=EMAIL)).to_be_visible()
    event = AuditEvent.objects.get(tag="admin:session:create")
    assert (event.actor, event.data) == (EMAIL, {"method": "webauthn"})


def test_an_action_in_an_older_session_takes_the_passkey_again(holder: Visitor) -> None:
    User.objects.filter(email=EMAIL).update(is_staff=True)
    other = member(organization("Others"), "other@example.com")
    press(holder)
    expect(holder.page.get_by_role("link", name=EMAIL)).to_be_visible()
    (row,) = Session.objects.all()
    session = SessionStore(row.session_key)
    session[PROVEN_AT] = 0
    session.save()
    holder.page.goto(f"{holder.base}/admin/accounts/user/{other.pk}/change/")
    holder.page.get_by_role("button", name="Disable…").click()
    holder.page.get_by_label("Reason").fill("asked by phone")
    expect(holder.page.get_by_label("Code")).to_be_visible()
    holder.page.get_by_role("button", name="Use a passkey").click()
    expect(holder.page.get_by_text("done for 1 of 1")).to_be_visible()
    assert not User.objects.get(pk=other.pk).is_active


def test_a_tenant_with_a_passkey_does_not_get_in(holder: Visitor) -> None:
    press(holder)
    expect(holder.page.get_by_role("alert")).to_contain_text("passkey")
    holder.page.goto(f"{holder.base}/admin/")
    expect(holder.page).to_have_url(f"{holder.base}/admin/login/?next=/admin/")
