"""In a browser: what was typed in a form survives a reload, and goes when the form is closed."""

import pytest
from playwright.sync_api import expect

from accounts.models import Session, User
from tests.cast import member
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, PASSWORD, add_account, sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

# The page, the field and what is typed.
FORMS = [
    ("members", "#domain", "example.com"),
    ("account", "#new-email", "dora@example.org"),
    ("organization", "#name", "Lakes & Rivers"),
    ("policy", "#grace", "11"),
    ("usage", "#cap", "12.50"),
    ("operator", "#account", "DE89 3704 0044 0532 0130 00"),
]
# The same, with the button that opens the dialog.
DIALOGS = [
    ("environments", "New environment", "#environment-id", "staging"),
    ("webhooks", "New webhook", "#webhook-url", "https://example.com/hook"),
    ("api-keys", "New API key", "#api-key-name", "nightly"),
    ("members", "Invite members", "#invite-email", "erin@example.com"),
    ("members", "Change: dora@example.com", "#member-labels", "billing"),
    ("sql", "Save …", "#save-name", "Totals"),
]


def test_what_is_typed_in_a_form_survives_a_reload_until_it_is_discarded(visitor: Visitor) -> None:
    sign_up(visitor)
    for page, field, text in FORMS:
        visitor.go(f"/console/{page}")
        place = visitor.page.locator(field)
        stored = place.input_value()
        # In a part that is folded, as the payout method.
        place.evaluate("(each) => each.closest('details')?.setAttribute('open', '')")
        place.fill(text)
        visitor.go(f"/console/{page}")
        expect(place).to_have_value(text)
        expect(place).to_be_visible()
        visitor.press("Discard")
        expect(place).to_have_value(stored)
        visitor.go(f"/console/{page}")
        expect(place).to_have_value(stored)


def test_a_form_survives_the_end_of_the_session_for_the_same_user_alone(visitor: Visitor) -> None:
    add_account("erin@example.com")
    sign_up(visitor)
    visitor.go("/console/organization")
    for email, name in ((EMAIL, "Lakes & Rivers"), ("erin@example.com", "Lakes & Sons")):
        visitor.fill("Name", "Lakes & Rivers")
        Session.objects.all().delete()
        visitor.press("Rename")
        visitor.is_at("/console/sign-in?next=%2Fconsole%2Forganization")
        visitor.fill("E-mail", email)
        visitor.fill("Password", PASSWORD)
        visitor.press("Sign in")
        visitor.is_at("/console/organization")
        expect(visitor.field("Name")).to_have_value(name)


def test_a_dialog_keeps_what_is_typed_until_it_is_closed(visitor: Visitor) -> None:
    sign_up(visitor)
    for page, button, field, text in DIALOGS:
        visitor.go(f"/console/{page}")
        visitor.press(button)
        visitor.page.locator(field).fill(text)
        visitor.go(f"/console/{page}")
        visitor.press(button)
        expect(visitor.page.locator(field)).to_have_value(text)
        visitor.page.locator("dialog[open] [data-close]").click()
        visitor.press(button)
        expect(visitor.page.locator(field)).to_have_value("")


def test_what_is_typed_in_an_environment_stays_there(visitor: Visitor) -> None:
    sign_up(visitor)
    name = visitor.page.locator("#save-name")
    visitor.go("/console/sql")
    visitor.press("Save …")
    name.fill("Totals")
    visitor.go("/console/sql")
    for place, text in (("sandbox", ""), ("live", "Totals")):
        visitor.page.locator("#environment-menu summary").click()
        visitor.page.locator("#environments").get_by_role("button", name=place).click()
        expect(visitor.page.locator("#environment-menu summary")).to_contain_text(place)
        visitor.settle()
        visitor.press("Save …")
        expect(name).to_have_value(text)
        if place == "sandbox":
            visitor.page.locator("dialog[open] [data-close]").click()


def test_the_scopes_of_a_key_survive_a_reload(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/api-keys")
    visitor.press("New API key")
    box = visitor.page.locator("#api-key-scopes input:enabled").first
    is_checked = box.is_checked()
    box.click()
    visitor.go("/console/api-keys")
    visitor.press("New API key")
    assert box.is_checked() is not is_checked


def test_a_draft_takes_nothing_back_that_was_changed_elsewhere(visitor: Visitor) -> None:
    sign_up(visitor)
    home = User.objects.get(email=EMAIL).organization
    bob = member(home, "bob@example.com")
    visitor.go("/console/members")
    visitor.press("Change: bob@example.com")
    visitor.page.locator("#member-labels").fill("billing")
    User.objects.filter(pk=bob.pk).update(roles=["reader"], labels=["ledger"])
    visitor.go("/console/members")
    visitor.press("Change: bob@example.com")
    expect(visitor.page.locator("#member-labels")).to_have_value("billing")
    expect(visitor.page.locator("#member-form [value=admin]")).not_to_be_checked()
    visitor.press("Save")
    visitor.sees("This was changed elsewhere after it was shown here.")
    bob.refresh_from_db()
    assert (bob.roles, bob.labels) == (["reader"], ["ledger"])
    visitor.press("Save")
    visitor.sees_status("bob@example.com is changed.")
    bob.refresh_from_db()
    assert (bob.roles, bob.labels) == (["reader"], ["billing"])
