"""In a browser: what helps to write SQL, completion and the history of what ran."""

import re
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from environments.models import Environment
from sqlgateway.models import SqlRecord
from sqlgateway.run import history
from tests.console.browser import Visitor
from tests.console.journeys import run_sql, sign_up, write_sql

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def sql(visitor: Visitor) -> Visitor:
    """Return a visitor on the SQL page."""
    sign_up(visitor)
    visitor.go("/console/sql")
    return visitor


def ran(slug: str, text: str, *, minutes: int, outcome: str = "success", explain: str = "") -> None:
    """Store a request of an environment's history."""
    place = Environment.objects.get(slug=slug)
    at = timezone.now() - timedelta(minutes=minutes)
    SqlRecord.objects.create(
        id=UUID(int=history.first_id(at).int + minutes),
        organization_id=place.organization_id,
        environment=place,
        actor="dora@example.com",
        role="admin",
        request_id="r",
        at=at,
        text=text,
        statements=1,
        elapsed_ms=2.5,
        row_count=3,
        explain=explain,
        outcome=outcome,
        sqlstate="42P01" if outcome == "sql_refused" else "",
    )


def test_tables_columns_and_keywords_are_completed(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    page.clock.install()
    run_sql(sql, "CREATE TABLE lakes (id int, depth_m numeric); CREATE SCHEMA maps;")
    run_sql(sql, "CREATE TABLE maps.sheets (scale int)")
    expect(page.locator("#schema-tree")).to_contain_text("sheets")
    offered = page.locator(".cm-tooltip-autocomplete li")
    write_sql(sql, "SELECT l.dep FROM lakes AS l")
    for _ in range(len(" FROM lakes AS l")):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Control+Space")
    # No keyword, such as DEPENDS.
    expect(offered).to_have_text(["depth_mnumeric"])
    picture(page, "sql-completion")
    # CodeMirror ignores keys for 75 ms, so that none is accepted that has just appeared.
    page.clock.fast_forward(1000)
    page.keyboard.press("Tab")
    editor = page.get_by_role("textbox", name="SQL")
    expect(editor).to_have_text("SELECT l.depth_m FROM lakes AS l")
    write_sql(sql, "SELECT * FROM maps.")
    page.keyboard.type("sh")
    expect(offered.first).to_have_text("sheets")
    offered.first.click()
    expect(editor).to_have_text("SELECT * FROM maps.sheets")
    write_sql(sql, "")
    page.keyboard.type("sel")
    expect(offered.get_by_text("SELECT", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(offered).to_have_count(0)
    # Without a list, Tab leaves the editor.
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()


def test_enter_is_a_new_line_unless_an_arrow_key_chose_a_completion(sql: Visitor) -> None:
    page = sql.page
    page.clock.install()
    run_sql(sql, "CREATE TABLE big (id int, t_order int); CREATE TABLE t_orders (id int);")
    expect(page.locator("#schema-tree")).to_contain_text("t_orders")
    editor = page.get_by_role("textbox", name="SQL")
    offered = page.locator(".cm-tooltip-autocomplete .cm-completionLabel")

    def begin(text: str) -> None:
        write_sql(sql, " ")
        page.keyboard.press("Backspace")
        page.keyboard.type(text)

    begin("SELECT id FROM big WHERE id = t")
    expect(offered.first).to_be_visible()
    page.clock.fast_forward(1000)
    page.keyboard.press("Enter")
    page.keyboard.type("-- mine")
    expect(page.locator(".cm-line")).to_have_text(["SELECT id FROM big WHERE id = t", "-- mine"])
    begin("SELECT id FROM t_or")
    expect(offered.first).to_have_text("t_orders")
    page.clock.fast_forward(1000)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(editor).to_have_text("SELECT id FROM t_orders")
    # Where a name is new nothing is offered: an alias, a column, a table.
    for text in ("SELECT id AS b", "SELECT id FROM big b", "CREATE TABLE zz (a int, b", "WITH b"):
        begin(text)
        # The list would have opened by then.
        page.clock.fast_forward(1000)
        page.keyboard.press("Enter")
        page.keyboard.type("x")
        expect(page.locator(".cm-line")).to_have_text(
            [re.compile(re.escape(text)), re.compile(r"^\s*x")]
        )
        expect(offered.get_by_text("big", exact=True)).to_have_count(0)


def test_behind_a_dot_only_the_columns_of_its_table_are_offered(sql: Visitor) -> None:
    page = sql.page
    run_sql(sql, "CREATE TABLE lakes (id int, depth_m int); CREATE TABLE other (data int);")
    expect(page.locator("#schema-tree")).to_contain_text("other")
    offered = page.locator(".cm-tooltip-autocomplete .cm-completionLabel")
    for before, after, name in (
        ("SELECT l.d", " FROM lakes AS l", "depth_m"),
        ("SELECT lakes.d", " FROM lakes, other", "depth_m"),
        ("SELECT o.", " FROM lakes AS l JOIN other AS o ON true", "data"),
        ("SELECT l.depth_m, l.i", " FROM lakes AS l", "id"),
    ):
        write_sql(sql, before + after)
        for _ in after:
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("Control+Space")
        expect(offered).to_have_text([name])
        page.keyboard.press("Escape")
        expect(offered).to_have_count(0)


def test_the_history_is_listed_searched_and_opened(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    ran("live", "SELECT name FROM lakes", minutes=3)
    ran("live", "SELECT depth FROM nonesuch", minutes=2, outcome="sql_refused")
    ran("live", "TABLE lakes -- " + "x" * 2_000, minutes=9)
    ran("sandbox", "SELECT 'elsewhere'", minutes=1)
    ran("live", "DELETE FROM lakes -- planned", minutes=7, explain="plan")
    ran("live", "DELETE FROM lakes -- measured", minutes=8, explain="analyze")
    for _ in range(50):
        ran("live", "SELECT 'earlier'", minutes=60)
    page, items = sql.page, sql.page.locator("#history-list li")
    page.get_by_role("tab", name="History").click()
    expect(items).to_contain_text(["nonesuch", "SELECT name FROM lakes"])
    expect(items.first).to_contain_text("42P01")
    kinds = items.locator("[data-slot=kind]")
    expect(items.nth(1)).to_contain_text("3 ms · 3 rows")
    expect(kinds.locator("visible=true")).to_have_text(["Plan", "Explain analyze"])
    expect(items.nth(2)).not_to_contain_text("rows")
    expect(items.nth(4)).to_contain_text("3 rows · not the whole text")
    expect(items).to_have_count(50)
    sql.press("Show older")
    expect(items).to_have_count(55)
    expect(items.nth(50).get_by_role("button")).to_be_focused()
    expect(page.get_by_role("button", name="Show older")).to_be_hidden()
    picture(page, "sql-history")
    page.locator("#history-filter").fill("lakes -- x")
    expect(items).to_contain_text(["-- x"])
    expect(items).to_have_count(1)
    items.get_by_role("button").click()
    sql.press("Run")
    expect(page.locator("#sql-problem")).to_contain_text("syntax error")
    page.locator("#history-filter").fill("name")
    expect(items).to_contain_text(["SELECT name"])
    expect(items).to_have_count(1)
    items.get_by_role("button").click()
    expect(page.get_by_role("textbox", name="SQL")).to_have_text("SELECT name FROM lakes")
    page.locator("#history-filter").fill("absent")
    sql.sees("No results.")
