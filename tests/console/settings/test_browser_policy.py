"""In a browser: the policy, members without a factor, and who may change it."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from environments.models import Organization
from tests.cast import member
from tests.console.browser import Visitor
from tests.console.journeys import set_up_app, sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_an_admin_sets_the_policy_and_sees_members_without_a_factor(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    organization = Organization.objects.get()
    member(organization, "bob@example.com", role="reader")
    set_up_app(visitor)
    visitor.go("/console/policy")
    visitor.sees("With an allowed second factor: 1 of 2. Missing:")
    visitor.sees("bob@example.com")
    visitor.page.get_by_label("Every member needs a second factor").check()
    visitor.fill("Days to set one up", "14")
    visitor.page.get_by_label("Text message").uncheck()
    visitor.press("Save")
    question = visitor.page.get_by_role("alertdialog")
    expect(question).to_contain_text("One member has no second factor that the policy allows.")
    expect(question).to_contain_text("bob@example.com can only set one up, from")
    assert not Organization.objects.get().mfa_required
    visitor.agrees("Save the policy")
    visitor.sees_status("The policy is saved.")
    picture(visitor.page, "policy")
    organization.refresh_from_db()
    assert organization.mfa_required
    assert organization.mfa_grace_period_days == 14
    assert organization.mfa_allowed_methods == ["totp", "email", "webauthn", "backup_codes"]
    visitor.go("/console/policy")
    expect(visitor.page.get_by_label("Every member needs a second factor")).to_be_checked()
    expect(visitor.page.get_by_label("Text message")).not_to_be_checked()


def test_a_policy_that_locks_out_is_refused(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/policy")
    visitor.page.get_by_label("Every member needs a second factor").check()
    visitor.fill("Days to set one up", "0")
    visitor.press("Save")
    visitor.sees("This policy would lock you out.")
    visitor.fill("Days to set one up", "999")
    visitor.press("Save")
    field = visitor.page.get_by_label("Days to set one up")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert not Organization.objects.get().mfa_required
