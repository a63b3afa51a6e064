"""In a browser: the SQL page, from a text to its rows, its error, its plan."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import Session, User
from sqlgateway.models import SavedQuery
from sqlgateway.run.history import RECORDER
from tests.console.browser import Visitor, held
from tests.console.journeys import run_sql, sign_out, sign_up, write_sql
from tests.console.layout import SIZES, hold_panel

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture
def sql(visit: Callable[..., Visitor], request: pytest.FixtureRequest) -> Visitor:
    """Return a visitor on the SQL page."""
    size = SIZES[getattr(request, "param", "wide")]
    visitor = visit(**size, permissions=["clipboard-read", "clipboard-write"])
    sign_up(visitor)
    visitor.go("/console/sql")
    return visitor


@pytest.mark.parametrize("sql", SIZES, indirect=True)
def test_each_statement_has_a_result_and_an_error_leaves_none(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    write_sql(
        sql,
        "CREATE TABLE lakes (id int PRIMARY KEY, name text);\n"
        "SELECT n AS id, 'lake ' || n AS name, CASE WHEN n > 2 THEN n * 1.5 END AS depth,\n"
        "  '<b>not markup</b>' AS note FROM generate_series(1, 3) AS n",
    )
    page.keyboard.press("Control+Enter")
    grid = page.get_by_role("grid", name="Rows")
    expect(grid.get_by_role("columnheader")).to_have_text(
        ["Row", "idint4", "nametext", "depthnumeric", "notetext"]
    )
    expect(grid.get_by_role("row").nth(1)).to_contain_text("NULL")
    expect(grid.get_by_role("row").nth(3)).to_contain_text("lake 3")
    expect(grid).to_contain_text("<b>not markup</b>")
    expect(page.get_by_role("tab", name="1 CREATE TABLE")).to_be_visible()
    # What was created is in the tree, and can be completed.
    expect(page.locator("#schema-tree")).to_contain_text("lakes")
    picture(page, "sql")
    page.get_by_role("tab", name="1 CREATE TABLE").click()
    expect(grid).to_be_hidden()

    run_sql(sql, "SELECT 1;\nSELECT depth\nFROM lakes")
    expect(page.locator("#sql-problem")).to_contain_text('Line 2, column 8: column "depth" does')
    expect(page.locator(".cm-error")).to_have_text("depth")
    expect(page.locator(".cm-error-sentence")).to_contain_text("does not exist")
    expect(grid).to_be_hidden()
    expect(page.locator("#result-tabs [role=tab]")).to_have_count(0)


def test_only_the_selection_runs_and_its_error_is_marked_where_it_is(sql: Visitor) -> None:
    write_sql(sql, "SELECT 'Größe 🐟';\nSELECT nonesuch, '🐟' AS fish, other")
    sql.page.keyboard.press("Shift+Home")
    sql.page.keyboard.press("Control+Enter")
    expect(sql.page.locator(".cm-error")).to_have_text("nonesuch")
    sql.page.keyboard.press("Control+End")
    sql.page.keyboard.type("x")
    expect(sql.page.locator(".cm-error")).to_have_count(0)


def test_ten_thousand_rows_are_reached_by_keyboard_and_few_are_in_the_document(
    sql: Visitor,
) -> None:
    page = sql.page
    columns = ", ".join(f"n * {number} AS c{number}" for number in range(20))
    run_sql(sql, f"SELECT {columns} FROM generate_series(1, 10000) AS n")  # noqa: S608  # numbers
    grid = page.get_by_role("grid", name="Rows")
    expect(grid).to_have_attribute("aria-rowcount", "10001")
    expect(page.locator("#result-summary")).to_contain_text("10,000 rows")
    grid.focus()
    page.keyboard.press("Control+End")
    expect(grid.get_by_role("rowheader", name="10000", exact=True)).to_be_visible()
    last = page.locator(f"#{grid.get_attribute('aria-activedescendant')}")
    expect(last).to_have_text("190000")
    assert page.locator(".grid-row").count() < 60
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Control+c")
    assert page.evaluate("navigator.clipboard.readText()") == "189981\n190000"
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="c19")).to_contain_text("189981")
    page.keyboard.press("Escape")
    expect(grid).to_be_focused()


def test_a_result_is_saved_as_a_file_and_a_cut_one_as_a_whole(sql: Visitor) -> None:
    run_sql(
        sql,
        "SELECT n, NULL AS x, '' AS y, '\"' AS z, ARRAY[1.50] AS a, true AS b"
        " FROM generate_series(1, 10001) AS n",
    )
    expect(sql.page.locator("#result-summary")).to_contain_text("Cut: only the first 10,000")

    def saved(choice: str) -> list[str]:
        sql.page.locator("#export-menu summary").click()
        with sql.page.expect_download() as download:
            sql.press(choice)
        return download.value.path().read_text().splitlines()

    shown = saved("Rows shown, CSV")
    whole = saved("All rows, CSV (runs it again, read-only)")
    assert shown[:2] == ["n,x,y,z,a,b", '1,,"","""",{1.50},true']
    assert whole[:2] == ["n,x,y,z,a,b", '1,,"","""",{1.50},t']
    assert (len(shown), len(whole)) == (10_001, 10_002)
    shown = saved("Rows shown, NDJSON")
    whole = saved("All rows, NDJSON (runs it again, read-only)")
    assert shown[0] == '{"n":1,"x":null,"y":"","z":"\\"","a":"{1.50}","b":true}'
    assert (whole[:-1], len(whole)) == (shown, 10_001)


@pytest.mark.parametrize("sql", SIZES, indirect=True)
def test_a_result_is_sorted_copied_and_given_room(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    run_sql(
        sql, "SELECT n, 'a|' || n AS t FROM (VALUES (9), (10), (NULL), (9007199254740993)) AS v (n)"
    )
    grid = page.get_by_role("grid", name="Rows")
    first = grid.locator("[role=gridcell][aria-colindex='2']")
    # In sight, also where the page is longer than the window.
    expect(first.first).to_be_in_viewport()
    head = grid.get_by_role("columnheader", name="n")
    for sort, values in (
        ("ascending", ["9", "10", "9007199254740993", "NULL"]),
        ("descending", ["9007199254740993", "10", "9", "NULL"]),
        (None, ["9", "10", "NULL", "9007199254740993"]),
    ):
        head.click()
        expect(first).to_have_text(values)
        assert head.get_attribute("aria-sort") == sort

    def copied(choice: str) -> str:
        page.locator("#copy-menu summary").click()
        expect(page.locator("#copy-what")).to_have_text("4 rows:")
        sql.press(choice)
        sql.sees_status("4 rows copied")
        return str(page.evaluate("navigator.clipboard.readText()"))

    assert copied("As CSV").splitlines()[:2] == ["n,t", "9,a|9"]
    assert json.loads(copied("As JSON"))[:2] == [{"n": 9, "t": "a|9"}, {"n": 10, "t": "a|10"}]
    assert "| 9 | a\\|9 |" in copied("As Markdown")
    picture(page, "sql-sorted")
    # As at 200 % zoom of a laptop's window.
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": 720, "height": 450})
    run_sql(sql, "SELECT 7 AS n")
    expect(page.get_by_role("gridcell", name="7", exact=True)).to_be_in_viewport()
    page.set_viewport_size(size)
    border = page.get_by_role("separator")
    editor = page.locator("#editor")
    before = editor.evaluate("(each) => each.offsetHeight")
    border.press("ArrowUp")
    expect(border).to_have_attribute("aria-valuenow", str(before - 24))
    border.scroll_into_view_if_needed()
    box = border.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 60)
    page.mouse.up()
    expect(border).to_have_attribute("aria-valuenow", str(before + 36))
    page.reload()
    sql.settle()
    assert editor.evaluate("(each) => each.offsetHeight") == before + 36


@pytest.mark.parametrize("sql", SIZES, indirect=True)
def test_without_a_table_the_page_leads_to_the_first_one(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    sql.sees("No tables yet")
    expect(page.get_by_role("link", name="New table, CSV import")).to_be_visible()
    picture(page, "sql-first-table")
    hold_panel(sql, "an environment without tables")
    sql.press("Write CREATE TABLE")
    sql.press("Run")
    expect(page.locator("#result-summary")).to_contain_text("CREATE TABLE")
    # What was typed since stays.
    run_sql(sql, "SELECT 1 AS one; DROP TABLE notes;")
    expect(page.locator("#result-summary")).to_contain_text("DROP TABLE")
    expect(page.locator("#first-table")).to_be_hidden()
    sql.go("/console/sql")
    sql.press("Write CREATE TABLE")
    expect(page.locator("#editor")).to_contain_text("SELECT 1 AS one")
    expect(page.locator("#editor")).to_contain_text("CREATE TABLE notes")


def test_a_running_query_is_cancelled_in_the_database(sql: Visitor) -> None:
    with sql.page.expect_response("**/v1/sql") as answered:
        run_sql(sql, "SELECT pg_sleep(60)")
        expect(sql.page.locator("#elapsed")).not_to_have_text("0.0 s")
        sql.press("Cancel")
    assert answered.value.json()["code"] == "query_cancelled"
    expect(sql.page.locator("#result-summary")).to_have_text("Cancelled.")
    expect(sql.page.get_by_role("button", name="Run", exact=True)).to_be_visible()


def test_what_is_cancelled_without_a_network_is_not_said_to_be_cancelled(sql: Visitor) -> None:
    kept: list[Route] = []

    def carry_out(route: Route) -> None:
        """Run the statement, and lose the answer."""
        route.fetch()
        kept.append(route)

    run_sql(sql, "CREATE TABLE lakes (id int)")
    expect(sql.page.locator("#result-summary")).to_contain_text("CREATE TABLE")
    sql.page.route("**/v1/sql", carry_out)
    sql.page.route("**/v1/sql/*-*", lambda route: route.abort())
    run_sql(sql, "INSERT INTO lakes VALUES (1)")
    sql.press("Cancel")
    summary = sql.page.locator("#result-summary")
    expect(summary).to_contain_text("It may have been carried out")
    sql.page.unroute_all()
    sql.page.route("**/v1/sql", lambda route: route.abort())
    sql.press("Run")
    problem = sql.page.locator("#sql-problem")
    expect(problem).to_contain_text("cannot be reached")
    expect(problem).to_contain_text("It may have been carried out")
    sql.page.unroute_all()
    run_sql(sql, "SELECT count(*) FROM lakes")
    expect(sql.page.get_by_role("grid", name="Rows").get_by_role("row").nth(1)).to_contain_text("1")
    # The browser's lines about the requests that were lost.
    sql.faults.clear()


@pytest.mark.parametrize("sql", SIZES, indirect=True)
def test_the_plan_of_the_statement_at_the_cursor_is_a_tree(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    write_sql(
        sql,
        "SELECT nonesuch;\n"
        "SELECT n FROM generate_series(1, 90000) AS n WHERE n < 4 ORDER BY n DESC",
    )
    sql.press("Explain analyze")
    plan = sql.page.locator("#result-plan")
    expect(plan.locator("strong")).to_have_text(["Sort", "Function Scan on generate_series"])
    expect(plan).to_contain_text("3 rows")
    # A third of the rows are estimated, and 3 come.
    expect(plan.locator(".plan-off").first).to_have_text("30,000 estimated")
    expect(plan.locator(".plan-slow").first).to_contain_text(" ms")
    picture(sql.page, "sql-plan")
    write_sql(sql, "CREATE TABLE made AS SELECT 1")
    sql.press("Explain analyze")
    sql.agrees("Cancel")
    expect(plan.locator("strong")).to_have_count(2)


def test_a_draft_survives_the_end_of_the_session_and_not_the_sign_out(sql: Visitor) -> None:
    page = sql.page
    editor = page.get_by_role("textbox", name="SQL")
    write_sql(sql, "SELECT 'a long thought'")
    Session.objects.all().delete()
    sql.press("Run")
    sql.is_at("/console/sign-in?next=%2Fconsole%2Fsql")
    sql.fill("E-mail", "dora@example.com")
    sql.fill("Password", "seven quiet lakes")
    sql.press("Sign in")
    sql.is_at("/console/sql")
    expect(editor).to_have_text("SELECT 'a long thought'")
    sign_out(sql)
    kept = page.evaluate("Object.keys(localStorage).filter((key) => key.includes('draft'))")
    assert kept == []


def test_a_saved_query_is_shared_and_overwritten_knowingly_alone(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    editor = page.get_by_role("textbox", name="SQL")
    write_sql(sql, "SELECT 1 AS first")
    sql.press("Save …")
    sql.fill("Name", "Firsts")
    sql.press("Save")
    sql.sees_status("Saved as “Firsts”.")
    SavedQuery.objects.update(version=2, text="SELECT 2", updated_by="bob@example.com")
    write_sql(sql, "SELECT 3")
    expect(page.locator("#opened-changed")).to_be_visible()
    page.keyboard.press("Control+s")
    sql.press("Save")
    sql.sees("bob@example.com has changed it. Press Save again")
    sql.press("Save")
    expect(page.locator("#save-dialog")).to_be_hidden()
    assert SavedQuery.objects.get().text == "SELECT 3"
    write_sql(sql, "SELECT 4")
    page.keyboard.press("Control+s")
    page.keyboard.press("Enter")
    question = page.get_by_role("alertdialog", name="Replace “Firsts”?")
    expect(question.locator("pre")).to_have_text("SELECT 3")
    # A quick Enter replaces nothing.
    page.keyboard.press("Enter")
    picture(page, "sql-replace")
    assert SavedQuery.objects.get().text == "SELECT 3"
    sql.agrees("Replace")
    expect(page.locator("#save-dialog")).to_be_hidden()
    assert SavedQuery.objects.get().text == "SELECT 4"
    expect(page.locator("#opened-changed")).to_be_hidden()
    expect(page.locator("#opened")).to_have_text("Firsts")
    # What is typed since stays over a reload, with its name.
    write_sql(sql, "SELECT 5")
    page.reload()
    sql.settle()
    expect(editor).to_have_text("SELECT 5")
    expect(page.locator("#opened-changed")).to_be_visible()
    # A text from the history has no name.
    sql.press("Run")
    expect(page.get_by_role("gridcell", name="5")).to_be_visible()
    RECORDER.flush()
    page.get_by_role("tab", name="History").click()
    expect(page.locator("#history-list li").first).to_contain_text(re.compile("[AP]M (UTC|GMT)"))
    page.get_by_role("button", name="SELECT 5").click()
    expect(page.locator("#opened")).to_have_text("")
    sql.is_at("/console/sql")
    page.get_by_role("tab", name="Saved").click()
    page.get_by_role("button", name="Firsts by dora@example.com").click()
    expect(editor).to_have_text("SELECT 4")
    sql.is_at(f"/console/sql?saved={SavedQuery.objects.get().pk}")
    page.go_back()
    expect(editor).to_have_text("SELECT 5")
    expect(page.locator("#opened")).to_have_text("")
    page.go_forward()
    expect(editor).to_have_text("SELECT 4")
    SavedQuery.objects.all().delete()
    page.reload()
    sql.settle()
    sql.sees("The saved query of this link is not there any more")
    expect(editor).to_have_text("SELECT 4")
    sql.is_at("/console/sql")


def test_a_dialog_sends_again_while_the_page_still_loads_what_it_sent(sql: Visitor) -> None:
    dialog = sql.page.locator("#save-dialog")
    write_sql(sql, "SELECT 1")
    sql.press("Save …")
    sql.fill("Name", "Firsts")
    with held(sql, r"/v1/sql/queries\?"):
        sql.press("Save")
        expect(dialog).to_be_hidden()
        write_sql(sql, "SELECT 2")
        sql.press("Save …")
        sql.press("Save")
    sql.agrees("Replace")
    expect(dialog).to_be_hidden()
    assert SavedQuery.objects.get().text == "SELECT 2"


def test_a_draft_belongs_to_its_tab_and_its_environment(sql: Visitor) -> None:
    page = sql.page
    editor = page.get_by_role("textbox", name="SQL")
    write_sql(sql, "DELETE FROM bookings")
    other = sql.context.new_page()
    other.goto(page.url)
    # A new tab begins with the last text, and goes on with its own.
    expect(other.get_by_role("textbox", name="SQL")).to_have_text("DELETE FROM bookings")
    other.get_by_role("textbox", name="SQL").focus()
    other.keyboard.press("Control+a")
    other.keyboard.insert_text("SELECT 'other'")
    page.reload()
    sql.settle()
    expect(editor).to_have_text("DELETE FROM bookings")
    other.close()
    for place, text in (
        ("sandbox", re.compile("SELECT version")),
        ("live", "DELETE FROM bookings"),
    ):
        page.locator("#environment-menu summary").click()
        page.locator("#environments").get_by_role("button", name=place).click()
        expect(page.locator("#environment-menu summary")).to_contain_text(place)
        expect(editor).to_have_text(text)


def test_on_a_phone_a_reader_runs_a_query_and_saves_none(visit: Callable[..., Visitor]) -> None:
    visitor = visit(**PHONE)
    sign_up(visitor)
    User.objects.update(roles=["reader"])
    visitor.go("/console/sql")
    run_sql(visitor, "SELECT 42 AS answer")
    cell = visitor.page.get_by_role("gridcell", name="42")
    expect(cell).to_be_in_viewport()
    expect(visitor.page.get_by_role("button", name="Save …")).to_be_hidden()


def test_on_a_phone_the_first_touch_loads_the_editor_and_loses_nothing(
    visit: Callable[..., Visitor],
) -> None:
    visitor = visit(**PHONE)
    page = visitor.page
    sign_up(visitor)
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    visitor.go("/console/sql")
    editor = page.get_by_role("textbox", name="SQL")
    expect(editor).to_have_value(re.compile("SELECT version"))
    assert not [url for url in fetched if "codemirror" in url]
    with held(visitor, "codemirror"):
        editor.fill("SELECT nonesuch, 'a draft'")
        editor.press("Home")
        page.keyboard.type("-- mine\n")
        page.keyboard.press("Shift+End")
    expect(page.locator(".cm-content")).to_be_focused()
    assert page.locator("textarea[aria-label=SQL]").count() == 0
    page.keyboard.type("SELECT other")
    expect(editor).to_have_text("-- mineSELECT other")
    # Nor does what needs the editor need a touch.
    visitor.go("/console/sql")
    visitor.press("Run")
    expect(page.locator(".cm-error")).to_have_text("other")
