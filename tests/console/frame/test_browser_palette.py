"""In a browser: the command palette, by keyboard alone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from accounts.models import User
from common.principals import Scope
from edgecache.api import buckets
from environments.models import Environment, Organization
from sqlgateway.models import Database, SavedQuery
from tests.cast import member
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, run_sql, sign_up
from tests.console.layout import SIZES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_pages_environments_and_members_are_a_few_letters_away(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    member(Organization.objects.get(), "bob@example.com", role="reader")
    page, keyboard = visitor.page, visitor.page.keyboard
    keyboard.press("Control+k")
    query = page.get_by_role("combobox", name="Search pages")
    expect(query).to_be_focused()
    options = page.get_by_role("option")
    keyboard.type("bob@")
    expect(options).to_have_text(["bob@example.comMember"])
    query.fill("nonesuch")
    visitor.sees("No results.")
    keyboard.press("Escape")
    expect(query).to_be_hidden()
    keyboard.press("Control+k")
    keyboard.type("sandb")
    expect(options).to_have_count(1)
    keyboard.press("Enter")
    expect(page.locator("#inside")).to_have_attribute("data-place", "sandbox")
    visitor.settle()
    page.get_by_role("button", name="Search").click()
    keyboard.type("page s")
    first = options.first.text_content()
    keyboard.press("ArrowDown")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).not_to_have_text(str(first))
    keyboard.press("ArrowUp")
    query.fill("audit")
    keyboard.press("Enter")
    visitor.is_at("/console/audit")


def test_members_of_a_large_organization_are_searched_for(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    home = Organization.objects.get()
    for number in range(201):
        member(home, f"member{number:03}@example.com", role="reader")
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    visitor.page.keyboard.press("Control+k")
    options = visitor.page.get_by_role("option")
    for number in (0, 200):
        visitor.page.get_by_role("combobox", name="Search pages").fill(f"member{number:03}@")
        expect(options).to_have_text([f"member{number:03}@example.comMember"])
    assert sum("/v1/members" in url for url in asked) <= 3


@pytest.mark.usefixtures("over_a_brain")
@pytest.mark.parametrize("size", SIZES)
def test_data_and_members_are_found_and_opened(visit: Callable[..., Visitor], size: str) -> None:
    visitor = visit(**SIZES[size])
    sign_up(visitor)
    visitor.go("/console/")
    owner = User.objects.get()
    member(Organization.objects.get(), "bob@example.com", role="reader")
    buckets.create(
        Scope(owner.organization_id, Environment.objects.get(slug="live").pk), {"name": "media"}
    )
    saved = SavedQuery.objects.create(
        organization_id=owner.organization_id, name="Deep ones", text="SELECT * FROM lakes"
    )
    # Looking for tables does not make a database.
    find(visitor, "lakes")
    visitor.sees("No results.")
    assert not Database.objects.exclude(environment=None).exists()
    visitor.go("/console/sql")
    run_sql(visitor, "CREATE SCHEMA maps; CREATE TABLE maps.lakes (id int)")
    expect(visitor.page.locator("#result-tabs [role=tab]")).to_have_count(2)
    for words, address, shown in (
        ("lakes", "/console/tables?schema=maps&table=lakes&environment=live", "lakes"),
        ("bucket med", "/console/objects?bucket=media", "This bucket is empty"),
        ("bob@", "/console/members?email=bob%40example.com", "bob@example.com"),
    ):
        visitor.go("/console/")
        find(visitor, words)
        expect(visitor.page.locator("#palette-list li")).to_have_count(1)
        visitor.page.keyboard.press("Enter")
        visitor.is_at(address)
        visitor.sees(shown)
    expect(visitor.page.locator("#member-list > li")).to_have_count(1)
    find(visitor, "deep")
    expect(visitor.page.locator("#palette-list li")).to_have_text("Deep onesSaved query")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(f"{visitor.base}/console/sql?saved={saved.pk}")
    editor = visitor.page.get_by_role("textbox", name="SQL")
    # On a phone the editor is loaded at its first use.
    (expect(editor).to_have_text if size == "wide" else expect(editor).to_have_value)(saved.text)
    expect(visitor.page.locator("#opened")).to_have_text(saved.name)


def test_readers_find_what_they_may_see(visitor: Visitor) -> None:
    sign_up(visitor)
    User.objects.update(roles=["reader"])
    visitor.go("/console/")
    find(visitor, EMAIL)
    visitor.sees("No results.")


def find(visitor: Visitor, words: str) -> None:
    """Open the palette, and type."""
    visitor.page.keyboard.press("Control+k")
    visitor.page.keyboard.type(words)
