"""In a browser: an API key is made, shown once, used and revoked."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import ApiKey
from tests.cast import Caller
from tests.console.browser import Visitor
from tests.console.journeys import sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
PATH = "/console/api-keys"


def test_a_key_is_made_shown_once_and_revoked(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    visitor.go(PATH)
    visitor.sees("No API keys yet")
    visitor.press("Create the first key")
    visitor.fill("Name", "nightly import")
    visitor.field("Role").select_option("operator")
    # A reader's scopes, and what is an admin's alone, are not in question.
    expect(visitor.page.locator("[value='schema:write']")).to_be_hidden()
    visitor.page.locator("[value='sql:write']").uncheck()
    visitor.press("Create")
    visitor.sees("Your new key is shown only now")
    text = visitor.page.locator("#api-key-text").text_content() or ""
    picture(visitor.page, "api-keys")
    (key,) = ApiKey.objects.all()
    assert key.role == "operator"
    assert "sql:write" not in key.scopes
    assert "objects:write" in key.scopes
    assert Caller(text).get("/v1/whoami").body["api_key_id"] == str(key.pk)
    visitor.press("I have saved it")
    expect(visitor.page.locator("#api-key-made")).to_be_hidden()
    assert text[8:-6] not in visitor.page.content()
    visitor.press("Revoke: nightly import")
    visitor.agrees("Revoke")
    visitor.sees_status("nightly import is revoked.")
    visitor.sees("revoked")
    assert Caller(text).get("/v1/whoami").status == 401
