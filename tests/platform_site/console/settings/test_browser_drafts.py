"""In a browser: what was typed in a form survives a reload, and goes when the form is closed."""

import pytest
from playwright.sync_api import expect

from tests.platform_site.console.browser import Visitor
from tests.platform_site.console.journeys import sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

# The page, the field and what is typed.
FORMS = [
    ("members", "#invite-email", "erin@example.com"),
    ("members", "#domain", "example.com"),
    ("account", "#new-email", "dora@example.org"),
]
# The same, with the button that opens the dialog.
DIALOGS = [
    ("environments", "New environment", "#environment-id", "staging"),
    ("webhooks", "New webhook", "#webhook-url", "https://example.com/hook"),
    ("api-keys", "New API key", "#api-key-name", "nightly"),
]


def test_what_is_typed_in_a_form_survives_a_reload(visitor: Visitor) -> None:
    sign_up(visitor)
    for page, field, text in FORMS:
        visitor.go(f"/console/{page}")
        visitor.page.locator(field).fill(text)
        visitor.go(f"/console/{page}")
        expect(visitor.page.locator(field)).to_have_value(text)


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
