"""In a browser: environments are created, cloned, renamed and deleted, with what that costs."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from procrastinate.contrib.django.models import ProcrastinateJob

from accounts.models import Session, User
from environments.models import Environment
from sqlgateway.databases.tasks import clone_database
from tests.console.browser import Visitor
from tests.console.journeys import age_proofs, run_sql, sign_up
from tests.console.layout import hold

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
NARROW = {"viewport": {"width": 390, "height": 844}}


def create(visitor: Visitor, slug: str) -> None:
    """Create an environment on the page."""
    visitor.press("New environment")
    visitor.fill("Id", slug)
    visitor.press("Create")
    expect(visitor.page.get_by_role("heading", name=slug)).to_be_visible()
    visitor.settle()


def test_an_environment_is_created_renamed_and_deleted(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    visitor.go("/console/environments")
    create(visitor, "staging")
    expect(visitor.page.locator(".worlds > li")).to_have_count(3)
    expect(visitor.page.locator(".numbers[aria-busy]")).to_have_count(0)
    picture(visitor.page, "environments")
    visitor.press("Rename: staging")
    visitor.fill("New name", "Stage two")
    visitor.press("Rename")
    expect(visitor.page.get_by_role("heading", name="Stage two")).to_be_visible()
    visitor.settle()
    # What is built in stays.
    for name in ("live", "sandbox"):
        expect(visitor.page.get_by_role("button", name=f"Delete: {name}")).to_have_count(0)
    visitor.press("Delete: Stage two")
    visitor.sees("0 tables, 0 B of database")
    visitor.sees("The data is deleted after seven days")
    visitor.fill("Type its id to confirm", "Stage two")
    visitor.press("Delete environment")
    visitor.sees("Type staging.")
    assert Environment.objects.filter(slug="staging", deleted_at=None).exists()
    visitor.fill("Type its id to confirm", "staging")
    visitor.press("Delete environment")
    expect(visitor.page.locator(".worlds > li")).to_have_count(2)


def test_an_environment_is_cloned_with_its_data(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    visitor.go("/console/sql")
    run_sql(visitor, "CREATE TABLE lakes AS SELECT 'Vättern' AS name")
    expect(visitor.page.locator("#result-summary")).to_contain_text("SELECT, 1 row")
    visitor.go("/console/environments")
    visitor.press("Clone: live")
    expect(visitor.field("Data")).to_have_value("live")
    visitor.fill("Id", "staging")
    visitor.press("Create")
    row = visitor.page.locator(".worlds > li").filter(has_text="staging")
    expect(row).to_contain_text("its database is being cloned")
    picture(visitor.page, "environments-cloning")
    for job in ProcrastinateJob.objects.filter(
        task_name="sqlgateway.databases.tasks.clone_database"
    ):
        clone_database(**job.args)
    # The page looks again by itself.
    expect(row).not_to_contain_text("being cloned")
    expect(row.locator('[data-slot="tables"]')).to_have_text("1")
    visitor.press("Switch to it: staging")
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("staging")
    visitor.go("/console/sql")
    run_sql(visitor, "SELECT name FROM lakes")
    expect(visitor.page.get_by_role("grid", name="Rows")).to_contain_text("Vättern")


def test_the_environment_that_one_is_in_can_be_deleted(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/environments")
    create(visitor, "staging")
    visitor.press("Switch to it: staging")
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("staging")
    visitor.settle()
    visitor.press("Delete: staging")
    visitor.fill("Type its id to confirm", "staging")
    visitor.press("Delete environment")
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("sandbox")
    expect(visitor.page.locator(".worlds > li")).to_have_count(2)


def test_a_deletion_that_is_given_up_leaves_the_session_where_it_was(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/environments")
    create(visitor, "staging")
    visitor.press("Switch to it: staging")
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("staging")
    visitor.settle()
    age_proofs()
    visitor.press("Delete: staging")
    visitor.fill("Type its id to confirm", "staging")
    visitor.press("Delete environment")
    expect(visitor.page.locator("#step-up")).to_be_visible()
    visitor.page.locator("#step-up-cancel").click()
    expect(visitor.page.locator("#step-up")).to_be_hidden()
    visitor.settle()
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("staging")
    assert Session.objects.get(ended_at=None).environment.slug == "staging"


def test_readers_see_environments_and_change_none(visit: Callable[..., Visitor]) -> None:
    visitor = visit(**NARROW)
    sign_up(visitor)
    User.objects.update(roles=["reader"])
    visitor.go("/console/environments")
    visitor.sees("you are here")
    hold(visitor, "environments")
    for name in ("New environment", "Rename: live", "Copy: live"):
        expect(visitor.page.get_by_role("button", name=name)).to_have_count(0)


def test_an_extension_is_installed_and_removed(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/environments")
    visitor.press("Extensions: sandbox")
    visitor.press("Install citext")
    visitor.sees_status("citext is installed.")
    visitor.press("Remove citext")
    expect(visitor.page.get_by_role("alertdialog")).to_contain_text("it is refused")
    visitor.agrees("Remove")
    visitor.sees_status("citext is removed.")
    expect(visitor.page.get_by_role("button", name="Install citext")).to_be_visible()
