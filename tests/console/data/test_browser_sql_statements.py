"""In a browser: the text that runs is the text that is shown, whole and byte for byte."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, Request, expect

from tests.console.browser import Visitor
from tests.console.data.tables_page import elsewhere
from tests.console.journeys import run_sql, sign_up, write_sql
from tests.console.layout import SIZES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

VICTIM = """
CREATE TABLE victim AS SELECT n AS id FROM generate_series(1, 1000) AS n;
CREATE FUNCTION touch() RETURNS void LANGUAGE sql AS 'DELETE FROM victim';
"""
COMMENT = "\n".join(["-- " + "x" * 57] * 50)
DELETE = "DELETE FROM victim\n   WHERE id = 7;"
# The editor's parser reads such a text in parts.
LONG = "\n".join([COMMENT, DELETE, *(f"SELECT {number} AS step;" for number in range(5000))])
ROUTINE = "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC\nSELECT 1;\nSELECT 2;\nEND;"
PAST_A_COMMENT = "DELETE FROM victim WHERE id < -1 +-- one; and\n 1;"


ON_BOTH_SIZES = pytest.mark.parametrize("sql", SIZES, indirect=True)


@pytest.fixture
def sql(visit: Callable[..., Visitor], request: pytest.FixtureRequest) -> Visitor:
    """Return a visitor on the SQL page of an environment with a table of 1,000 rows."""
    size = SIZES[getattr(request, "param", "wide")]
    visitor = visit(**size, permissions=["clipboard-read", "clipboard-write"])
    sign_up(visitor)
    elsewhere(visitor, VICTIM)
    visitor.go("/console/sql")
    return visitor


@pytest.fixture
def sent(sql: Visitor) -> list[dict[str, Any]]:
    """Return the bodies of the requests that the page sends to run SQL."""
    bodies: list[dict[str, Any]] = []

    def note(request: Request) -> None:
        if request.url.endswith("/v1/sql"):
            bodies.append(json.loads(request.post_data or ""))

    sql.page.on("request", note)
    return bodies


def at_line(visitor: Visitor, line: int) -> None:
    """Put the cursor at the beginning of a line, from 0."""
    visitor.page.get_by_role("textbox", name="SQL").press("Control+Home")
    for _ in range(line):
        visitor.page.keyboard.press("ArrowDown")


def rows(visitor: Visitor) -> str | None:
    """Return how many rows the table has."""
    run_sql(visitor, "SELECT 'rows: ' || count(*) FROM victim")
    cell = visitor.page.get_by_role("gridcell", name="rows: ")
    expect(cell).to_be_visible()
    return cell.text_content()


def test_a_statement_of_a_long_text_is_measured_whole(
    sql: Visitor, sent: list[dict[str, Any]], picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    # The draft, in which more is put than can be typed.
    write_sql(sql, "SELECT 1")
    page.wait_for_function(
        "() => Object.keys(sessionStorage).some((key) => key.endsWith(':live:sql'))"
    )
    page.evaluate(
        """(text) => {
          const kept = Object.keys(sessionStorage).find((key) => key.endsWith(":live:sql"));
          sessionStorage.setItem(kept, text);
        }""",
        LONG,
    )
    page.reload()
    sql.settle()
    page.get_by_role("textbox", name="SQL").press("Control+End")
    sql.press("Explain analyze")
    expect(page.locator("#result-plan")).to_be_visible()
    assert [body["query"] for body in sent] == ["SELECT 4999 AS step;"]
    at_line(sql, 51)
    sql.press("Explain analyze")
    question = page.get_by_role("alertdialog")
    expect(question).to_contain_text("what it writes stays written")
    expect(question.locator("pre")).to_have_text(DELETE)
    expect(page.locator(".cm-run")).to_have_text(DELETE.split("\n"))
    picture(page, "sql-measure")
    sql.agrees("Run it")
    expect(page.locator("#result-plan")).to_contain_text("Delete")
    assert sent[-1]["query"] == DELETE
    assert rows(sql) == "rows: 999"
    # CodeMirror's about the heights of lines that it has not drawn yet.
    sql.faults[:] = [each for each in sql.faults if "Measure loop restarted" not in each]


@pytest.mark.parametrize("how", ["Explain", "Explain analyze"])
def test_the_statement_is_the_one_at_the_cursor_or_none(
    sql: Visitor, sent: list[dict[str, Any]], how: str
) -> None:
    text = f"SELECT 1;\n\n-- remove old rows\n{PAST_A_COMMENT}\n{ROUTINE}\nSELECT 5"
    write_sql(sql, text)
    for line in (1, 2):
        at_line(sql, line)
        sql.press(how)
        sql.sees("There is no statement at the cursor.")
    assert sent == []
    for line, expected in ((0, "SELECT 1;"), (4, PAST_A_COMMENT), (7, ROUTINE), (9, "SELECT 5")):
        at_line(sql, line)
        with sql.page.expect_response("**/v1/sql"):
            sql.press(how)
        assert sent[-1]["query"] == expected
        if expected == PAST_A_COMMENT and how == "Explain analyze":
            sql.agrees("Cancel")
            expect(sql.page.locator(".cm-run")).to_have_count(0)
        expect(sql.page.get_by_role("button", name="Run", exact=True)).to_be_visible()


@pytest.mark.parametrize("text", ["SELECT touch()", "SELECT id INTO other FROM victim"])
def test_what_may_write_is_not_measured_without_a_question(sql: Visitor, text: str) -> None:
    write_sql(sql, text)
    sql.press("Explain analyze")
    expect(sql.page.get_by_role("alertdialog").locator("pre")).to_have_text(text)
    sql.agrees("Cancel")
    run_sql(sql, "SELECT count(*) || ' of other' FROM other")
    sql.sees('relation "other" does not exist')
    assert rows(sql) == "rows: 1000"


def test_a_selected_part_of_a_statement_runs_after_a_question(sql: Visitor) -> None:
    page = sql.page
    write_sql(sql, "SELECT 1;\nDELETE FROM victim WHERE id = 5;")
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("Control+Shift+ArrowRight")
    sql.press("Run selection")
    expect(page.get_by_role("alertdialog").locator("pre")).to_have_text("DELETE FROM victim")
    sql.agrees("Cancel")
    at_line(sql, 1)
    page.keyboard.press("Shift+End")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result-summary")).to_contain_text("DELETE, 1 row")
    assert rows(sql) == "rows: 999"


EVERY_ROW = [
    "DELETE FROM victim",
    "SELECT 1; UPDATE victim SET id = (SELECT 2 WHERE true)",
    "WITH gone AS (DELETE FROM victim RETURNING *) SELECT * FROM gone WHERE id = 1",
    "DO $$ BEGIN DELETE FROM victim; END $$",
    "EXPLAIN ANALYZE DELETE FROM victim -- WHERE id = 1",
]
NOT_EVERY_ROW = [
    "UPDATE victim SET id = id WHERE id = 0",
    "SELECT 'DELETE FROM victim' AS delete FROM victim WHERE id = 1 FOR UPDATE",
    "MERGE INTO victim USING (SELECT 0 AS n) ON id = n WHEN MATCHED THEN UPDATE SET id = n",
    "CREATE OR REPLACE FUNCTION touch() RETURNS void LANGUAGE sql AS 'DELETE FROM victim'",
]


@ON_BOTH_SIZES
def test_a_change_of_every_row_is_asked_for_and_shown(
    sql: Visitor, sent: list[dict[str, Any]], picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    question = page.get_by_role("alertdialog")
    for text in EVERY_ROW:
        run_sql(sql, text)
        expect(question).to_contain_text("no WHERE")
        expect(question).to_contain_text("in live")
        sql.agrees("Cancel")
        expect(question).to_be_hidden()
    assert sent == []
    for text in NOT_EVERY_ROW:
        with page.expect_response("**/v1/sql"):
            run_sql(sql, text)
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()
    run_sql(sql, "SELECT 2;" * 41 + "\nDELETE FROM victim;")
    expect(question.locator("pre")).to_have_text("DELETE FROM victim;")
    expect(question).to_contain_text("42 in all")
    picture(page, "sql-every-row")
    sql.agrees("Run it")
    expect(page.locator("#result-summary")).to_contain_text("DELETE, 1,000 rows")


@ON_BOTH_SIZES
@pytest.mark.parametrize("how", ["press", "key"])
def test_the_page_says_what_runs_and_runs_the_statement_at_the_cursor(
    sql: Visitor, sent: list[dict[str, Any]], how: str
) -> None:
    page = sql.page
    scope = page.locator("#run-scope")
    write_sql(sql, "SELECT 1;\nSELECT 2;\nSELECT 3;")
    expect(scope).to_have_text("all 3 statements")
    at_line(sql, 1)
    if how == "press":
        sql.press("Run statement")
    else:
        page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_role("gridcell", name="2")).to_be_visible()
    assert sent[-1]["query"] == "SELECT 2;"
    expect(page.locator(".cm-run")).to_have_text("SELECT 2;")
    at_line(sql, 1)
    page.keyboard.press("Shift+End")
    expect(page.get_by_role("button", name="Run selection")).to_be_visible()
    expect(scope).to_be_hidden()
    write_sql(sql, "SELECT 4")
    expect(scope).to_be_hidden()
    expect(page.get_by_role("button", name="Run statement")).to_be_hidden()


def test_an_error_stands_at_its_statement_and_says_what_became_of_the_others(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    problem = page.locator("#sql-problem")
    said = "DO $$ BEGIN RAISE NOTICE 'hello' USING HINT = 'greet'; END $$;"
    run_sql(sql, f"{said}\nUPDATE victim SET id = -1 WHERE id = 1;\nSELECT 1/0;\nSELECT 2;")
    expect(problem).to_contain_text("Statement 3 of 4 failed. division by zero (22012)")
    expect(problem).to_contain_text("The statements before it were rolled back")
    expect(page.locator("#result-notices")).to_have_text("NOTICE: hello\nHint: greet")
    expect(page.locator(".cm-error")).to_have_text("SELECT")
    expect(page.locator(".cm-line:has(.cm-error)")).to_have_text("SELECT 1/0;")
    expect(page.locator(".cm-error-sentence")).to_have_text("division by zero")
    picture(page, "sql-error")
    run_sql(sql, "SELECT 1;\nSELEC 2;")
    expect(problem).to_contain_text("Nothing ran")
    run_sql(sql, "BEGIN; SELECT 1; COMMIT; SELECT nonesuch")
    expect(problem).to_contain_text("What was committed before is stored")
    assert rows(sql) == "rows: 1000"


@ON_BOTH_SIZES
def test_a_running_write_asks_before_the_page_is_left(sql: Visitor) -> None:
    page = sql.page
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    run_sql(sql, "INSERT INTO victim SELECT 1 FROM pg_sleep(60)")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    tables = page.get_by_role("link", name="Tables")
    # On a phone the navigation is a drawer, which stays open with the page.
    drawer = page.get_by_role("button", name="Navigation", exact=True)
    is_phone = drawer.is_visible()
    if is_phone:
        drawer.click()
    tables.click(no_wait_after=True)
    if is_phone:
        page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    sql.press("Cancel")
    expect(page.locator("#result-summary")).to_have_text("Cancelled.")
    assert asked == ["beforeunload"]
    if is_phone:
        drawer.click()
    tables.click()
    expect(page).to_have_url(re.compile("/console/tables"))
    assert asked == ["beforeunload"]


def test_the_line_ends_of_a_text_stay_what_they_are(
    sql: Visitor, sent: list[dict[str, Any]], picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    editor = page.get_by_role("textbox", name="SQL")
    text = "-- of Windows\r\nSELECT 'length: ' || length('a\r\nb')"
    page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    editor.press("Control+a")
    editor.press("Control+v")
    sql.press("Run")
    expect(page.get_by_role("gridcell")).to_have_text("length: 4")
    picture(page, "sql-line-ends")
    # What is typed at a line's end is before its end.
    editor.press("Control+Home")
    page.keyboard.press("End")
    page.keyboard.type("; x")
    page.keyboard.press("ArrowRight")
    page.keyboard.type("  ")
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    typed = text.replace("Windows\r\n", "Windows; x\r\n  ")
    assert page.evaluate("navigator.clipboard.readText()") == typed
    # The draft, with the editor and in the text area of a phone.
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        sql.go("/console/sql")
        sql.press("Run")
        expect(page.get_by_role("gridcell")).to_have_text("length: 4")
        assert sent[-1]["query"] == typed
    # One end more or less is what was done to the text.
    editor.press("Control+Home")
    expect(page.locator(".cm-content")).to_be_focused()
    for key in ("ArrowDown", "Home", "Home", "Backspace"):
        page.keyboard.press(key)
    with page.expect_response("**/v1/sql"):
        sql.press("Run")
    assert sent[-1]["query"] == typed.replace("; x\r\n", "; x", 1)
