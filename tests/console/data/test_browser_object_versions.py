"""In a browser: a bucket keeps versions; what was deleted or replaced is restored."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Visitor
from tests.console.data.test_browser_objects import new_bucket, open_object, upload
from tests.console.journeys import sign_up
from tests.console.layout import ON_BOTH_SIZES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("over_a_brain"),
]


@ON_BOTH_SIZES
def test_a_deleted_object_is_found_and_restored(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    new_bucket(visitor)
    page = visitor.page
    page.locator("#to-settings").click()
    page.get_by_label("Keep versions").check()
    visitor.press("Save")
    visitor.sees_status("The settings are saved.")
    picture(page, "objects-versioning")
    visitor.go("/console/objects?bucket=media")
    upload(visitor, ("notes.txt", "text/plain", b"one"))
    visitor.sees_status("1 file uploaded")
    open_object(visitor, "notes.txt")
    expect(page.locator("#version-list li")).to_have_count(1)
    visitor.press("Delete")
    visitor.sees("The versions stay, and can be restored.")
    visitor.agrees("Delete")
    visitor.sees("This bucket is empty")
    visitor.press("Show deleted")
    page.get_by_role("button", name="notes.txt", exact=True).click()
    visitor.sees("It was deleted, and has versions.")
    rows = page.locator("#version-list li")
    expect(rows).to_have_count(2)
    picture(page, "objects-deleted-versions")
    rows.nth(1).get_by_role("button", name="Restore").click()
    visitor.sees_status("notes.txt is restored.")
    expect(rows).to_have_count(3)
    is_ready = expect(page.locator("#versions:not([aria-busy])"))
    is_ready.to_be_visible()
    expect(page.locator("#object-facts")).to_contain_text("ETag")
    with page.expect_download() as saved:
        rows.nth(2).get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "notes.txt"
    picture(page, "objects-versions")
    is_ready.to_be_visible()
    rows.nth(0).get_by_role("button", name="Delete").click()
    visitor.agrees("Delete")
    visitor.sees_status("The version is deleted.")
    # The deletion below it counts again; without it the first version is current.
    expect(rows).to_have_count(2)
    is_ready.to_be_visible()
    rows.nth(0).get_by_role("button", name="Remove the deletion").click()
    visitor.sees_status("The deletion is undone.")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("current")
