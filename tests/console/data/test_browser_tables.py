"""In a browser: the Tables page, with names that SQL has to quote."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from tests.console.browser import Visitor, held
from tests.console.journeys import run_sql, sign_up
from tests.console.layout import SIZES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

ON_BOTH_SIZES = pytest.mark.parametrize("tables", SIZES, indirect=True)
# Every name would end a statement that did not quote it.
TABLES = """
CREATE TABLE "a""b; drop" ("id'; --" int PRIMARY KEY, "va""lue" text, price numeric);
INSERT INTO "a""b; drop" SELECT n, 'v' || n, n FROM generate_series(1, 205) AS n;
CREATE TABLE keyless (n int);
INSERT INTO keyless SELECT n FROM generate_series(1, 101) AS n;
"""


@pytest.fixture
def tables(visit: Callable[..., Visitor], request: pytest.FixtureRequest) -> Visitor:
    """Return a visitor on the Tables page of an environment with tables."""
    size = SIZES[getattr(request, "param", "wide")]
    visitor = visit(**size, permissions=["clipboard-read", "clipboard-write"])
    sign_up(visitor)
    visitor.go("/console/sql")
    run_sql(visitor, TABLES)
    expect(visitor.page.locator("#result-summary")).to_contain_text("INSERT")
    visitor.go("/console/tables")
    return visitor


def cell(visitor: Visitor, row: int, column: int) -> Locator:
    """Return a cell by its place, from 0."""
    return visitor.page.locator(f"[aria-rowindex='{row + 2}'] [aria-colindex='{column + 2}']")


def change(visitor: Visitor, value: str) -> None:
    """Enter a value in the drawer of the cell that is open."""
    visitor.page.get_by_role("textbox", name="Value").fill(value)
    visitor.press("Save")


def elsewhere(visitor: Visitor, query: str) -> None:
    """Run a statement as another client would, with the session of the page."""
    visitor.page.evaluate(
        """async (query) => {
          const headers = { "X-Zonal-Console": "1", "Content-Type": "application/json" };
          const body = JSON.stringify({ query });
          const answer = await fetch("/v1/sql", { method: "POST", headers, body });
          if (!answer.ok) throw new Error(await answer.text());
        }""",
        query,
    )


def stored(visitor: Visitor, query: str) -> Any:
    """Return the first value of a query, as another client reads it."""
    return visitor.page.evaluate(
        """async (query) => {
          const headers = { "X-Zonal-Console": "1", "Content-Type": "application/json" };
          const body = JSON.stringify({ query, rows: "arrays" });
          const answer = await fetch("/v1/sql", { method: "POST", headers, body });
          return (await answer.json()).rows[0][0];
        }""",
        query,
    )


def paste(visitor: Visitor, field: Locator, text: str) -> None:
    """Paste a text into a field, in place of what it has."""
    visitor.page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    field.press("Control+a")
    field.press("Control+v")


@ON_BOTH_SIZES
def test_rows_are_read_page_by_page_in_the_order_of_their_type(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = tables.page
    expect(page.get_by_role("heading", name='a"b; drop')).to_be_visible()
    expect(page.locator("#rows-range")).to_have_text("Rows 1 to 100")
    picture(page, "tables")
    tables.press("Next")
    expect(cell(tables, 0, 0)).to_have_text("101")
    tables.press("Next")
    expect(page.locator("#rows-range")).to_have_text("Rows 201 to 205")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    head = page.get_by_role("columnheader", name="price")
    head.click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(cell(tables, 9, 2)).to_have_text("10")
    head.click()
    expect(cell(tables, 0, 2)).to_have_text("205")
    tables.press("Next")
    expect(cell(tables, 0, 2)).to_have_text("105")
    # No primary key: read by place, and changed by nothing.
    page.get_by_role("link", name="keyless").click()
    tables.sees("This table has no primary key")
    tables.press("Next")
    expect(cell(tables, 0, 0)).to_have_text("101")
    cell(tables, 0, 0).dblclick()
    expect(page.get_by_role("button", name="Save")).to_be_hidden()


def test_filters_are_values_and_a_wrong_one_leaves_no_rows(tables: Visitor) -> None:
    tables.press("Filter")
    tables.page.get_by_label("Column", exact=True).select_option('va"lue')
    tables.page.get_by_label("Value", exact=True).fill("'; DROP TABLE keyless; --")
    tables.press("Apply")
    tables.sees("No row fits.")
    tables.page.get_by_label("Value", exact=True).fill("v20")
    tables.page.get_by_label("Comparison").select_option("starts")
    tables.press("Apply")
    expect(tables.page.locator("#rows-range")).to_have_text("Rows 1 to 7")
    tables.press("Count all")
    tables.sees("7 rows fit")
    tables.page.get_by_label("Column", exact=True).select_option("price")
    tables.page.get_by_label("Comparison").select_option(">")
    tables.press("Apply")
    tables.sees('invalid input syntax for type numeric: "v20"')
    expect(tables.page.get_by_role("gridcell")).to_have_count(0)


@ON_BOTH_SIZES
def test_a_value_is_changed_and_a_concurrent_change_is_not_overwritten_silently(
    tables: Visitor,
) -> None:
    cell(tables, 0, 1).dblclick()
    change(tables, "it's new")
    tables.sees_status("is changed.")
    expect(cell(tables, 0, 1)).to_have_text("it's new")
    cell(tables, 0, 1).dblclick()
    elsewhere(tables, """UPDATE "a""b; drop" SET "va""lue" = 'theirs' WHERE price = 1""")
    change(tables, "mine")
    tables.sees("Someone changed this row in the meantime.")
    expect(cell(tables, 0, 1)).to_have_text("theirs")
    tables.press("Save")
    expect(cell(tables, 0, 1)).to_have_text("mine")
    # The key itself, and a row that is gone.
    cell(tables, 0, 0).dblclick()
    change(tables, "0")
    expect(cell(tables, 0, 0)).to_have_text("0")
    cell(tables, 1, 2).dblclick()
    elsewhere(tables, 'DELETE FROM "a""b; drop" WHERE price = 2')
    tables.page.get_by_label("NULL", exact=True).check()
    tables.press("Save")
    tables.sees("This row is not there any more")


def test_rows_are_inserted_and_deleted(tables: Visitor) -> None:
    page = tables.page
    tables.press("Insert row")
    page.get_by_label("id'; -- int").fill("1")
    tables.press("Insert")
    tables.sees("duplicate key value violates unique constraint")
    page.get_by_label("id'; -- int").fill("-1")
    tables.press("Insert")
    expect(cell(tables, 0, 0)).to_have_text("-1")
    expect(cell(tables, 0, 1)).to_have_text("NULL")
    for number in ("1", "3"):
        page.get_by_role("rowheader", name=number, exact=True).click()
    elsewhere(tables, """UPDATE "a""b; drop" SET price = 7 WHERE price = 2""")
    tables.press("Delete 2 rows")
    tables.agrees("Delete")
    tables.sees_status("1 row deleted. 1 row had been changed in the meantime and stayed")
    expect(cell(tables, 0, 0)).to_have_text("1")
    expect(cell(tables, 1, 2)).to_have_text("7")


def test_a_table_is_created_and_filled_from_a_file(tables: Visitor, tmp_path: Path) -> None:
    page = tables.page
    tables.press("New table")
    page.get_by_label("Name", exact=True).fill('Größe "1"')
    page.get_by_label("Column's name").nth(1).fill("name")
    expect(page.locator("#create-preview")).to_contain_text('CREATE TABLE "public"."Größe ""1"""')
    tables.press("Create")
    expect(page.get_by_role("heading", name='Größe "1"')).to_be_visible()
    file = tmp_path / "rows.csv"
    file.write_text("id,name\n1,Vättern\nx,Mälaren\n")
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    tables.press("Import")
    tables.sees("Line 3 of the file, column id: ")
    file.write_text('id,name\n1,Vättern\n2,""\n')
    page.get_by_label("File (UTF-8)").set_input_files(file)
    tables.press("Import")
    expect(cell(tables, 1, 1)).to_have_text("empty")
    page.get_by_role("tab", name="Structure").click()
    expect(page.locator("#columns-rows tr").first).to_contain_text("identity (by default)")
    expect(page.locator("#constraints-rows")).to_contain_text("PRIMARY KEY (id)")


def test_a_file_is_imported_once_however_often_it_is_sent(tables: Visitor, tmp_path: Path) -> None:
    page = tables.page
    file = tmp_path / "rows.csv"
    file.write_text("n\n7\n8\n")
    page.get_by_role("link", name="keyless").click()
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    with held(tables, "/v1/sql/import"):
        tables.press("Import")
        expect(page.locator("#import-progress")).to_be_visible()
        page.get_by_role("button", name="Import", exact=True).click(click_count=2)
    tables.sees_status("2 rows imported.")
    tables.press("Count all")
    tables.sees("103 rows")

    tables.page.reload()
    tables.settle()
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    tables.press("Import")
    expect(page.get_by_role("alertdialog")).to_contain_text("would be in the table twice")
    tables.agrees("Cancel")
    page.locator("#import-close").click()
    tables.press("Count all")
    tables.sees("103 rows")


def test_an_import_shows_how_much_was_sent_and_can_be_cancelled(
    tables: Visitor, tmp_path: Path
) -> None:
    page = tables.page
    file = tmp_path / "rows.csv"
    file.write_text("n\n" + "1\n" * 4_000_000)
    page.get_by_role("link", name="keyless").click()
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 100_000}
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", slow)
    tables.press("Import")
    expect(page.locator("#import-said")).to_have_text(re.compile(r"^[1-9].* of .* sent$"))
    expect(page.locator("#import-bar")).not_to_have_js_property("value", 0)
    tables.press("Cancel")
    network.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    expect(page.locator("#import-dialog")).to_be_hidden()
    tables.sees_status("Import cancelled:")
    tables.press("Count all")
    tables.sees("101 rows")


def test_a_cancelled_import_that_was_sent_whole_says_so(tables: Visitor, tmp_path: Path) -> None:
    page = tables.page
    file = tmp_path / "rows.csv"
    file.write_text("n\n7\n")
    page.get_by_role("link", name="keyless").click()
    # What nextval does is seen before its transaction ends.
    elsewhere(
        tables,
        "CREATE SEQUENCE gate; CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN WHILE (SELECT NOT is_called FROM gate) LOOP END LOOP; RETURN new; END'; "
        "CREATE TRIGGER waits BEFORE INSERT ON keyless FOR EACH ROW EXECUTE FUNCTION wait()",
    )
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    tables.press("Import")
    tables.sees("Sent. The rows are being written")
    tables.press("Cancel")
    tables.sees_status("its rows may be in the table")
    elsewhere(tables, "SELECT nextval('gate')")
    # The lock of the table waits for the import.
    elsewhere(tables, "LOCK TABLE keyless; DROP TABLE keyless")


def test_a_file_whose_answer_was_lost_is_asked_about(tables: Visitor, tmp_path: Path) -> None:
    page = tables.page
    file = tmp_path / "rows.csv"
    file.write_text("n\n7\n")
    page.get_by_role("link", name="keyless").click()
    page.route("**/v1/sql/import*", lambda route: route.abort())
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    tables.press("Import")
    tables.sees("The service cannot be reached.")
    page.unroute("**/v1/sql/import*")
    tables.faults.clear()
    tables.press("Import")
    expect(page.get_by_role("alertdialog")).to_contain_text("its rows may be in the table")
    tables.agrees("Import again")
    tables.sees_status("1 row imported.")


def test_forms_survive_a_reload_until_they_are_closed(tables: Visitor) -> None:
    page = tables.page
    cell(tables, 0, 1).dblclick()
    page.get_by_role("textbox", name="Value").fill("half a thought")
    tables.go("/console/tables")
    cell(tables, 1, 1).dblclick()
    expect(page.get_by_role("textbox", name="Value")).to_have_value("v2")
    tables.press("Close")
    cell(tables, 0, 1).dblclick()
    tables.sees("This was typed before, and is not saved yet.")
    expect(page.get_by_role("textbox", name="Value")).to_have_value("half a thought")
    tables.press("Close")
    cell(tables, 0, 1).dblclick()
    expect(page.get_by_role("textbox", name="Value")).to_have_value("v1")
    tables.press("Close")
    tables.press("Insert row")
    page.get_by_label("id'; -- int").fill("17")
    tables.go("/console/tables")
    tables.press("Insert row")
    expect(page.get_by_label("id'; -- int")).to_have_value("17")
    tables.press("Cancel")
    tables.press("New table")
    page.get_by_label("Column's name").nth(1).fill("kept")
    tables.go("/console/tables")
    tables.press("New table")
    expect(page.get_by_label("Column's name").nth(1)).to_have_value("kept")


def test_a_reader_sees_rows_and_changes_none(tables: Visitor) -> None:
    User.objects.update(roles=["reader"])
    tables.go("/console/tables")
    expect(tables.page.locator("#rows-range")).to_have_text("Rows 1 to 100")
    for name in ("New table", "Insert row", "Import CSV"):
        expect(tables.page.get_by_role("button", name=name)).to_be_hidden()
    cell(tables, 0, 1).dblclick()
    tables.sees("Your role may not change it.")
    expect(tables.page.get_by_role("button", name="Save")).to_be_hidden()


BLANKS = """
CREATE SCHEMA "two  words";
CREATE TYPE "two  words".st AS ENUM ('new', ' padded ', '', 'two  blanks');
CREATE TABLE "a blank " (id int PRIMARY KEY, "trail " text, status "two  words".st);
INSERT INTO "a blank " VALUES (1, E'a\\r\\n\\r\\nb\\nc "q"', ''), (2, E'x\\ry', ' padded ');
SELECT 1 AS made;
"""


def test_values_pass_through_the_page_byte_for_byte(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = tables.page
    tables.go("/console/sql")
    run_sql(tables, BLANKS)
    expect(page.locator("#result-summary")).to_contain_text("1 row")
    tables.go("/console/tables?schema=public&table=a+blank+")
    value, mixed = page.get_by_role("textbox", name="Value"), 'a\r\n\r\nb\nc "q"'
    whole = """SELECT json_agg(json_build_array("trail ", status) ORDER BY id) FROM "a blank " """

    # What was not touched, and what was touched elsewhere.
    for row, keys, saved in (
        (0, (), mixed),
        (0, ("Control+End", "!", "ArrowUp", "End", "Enter"), 'a\r\n\r\nb\n\r\nc "q"!'),
        (1, (), "x\ry"),
        (1, ("Control+a", "Delete", "Control+z"), "x\ry"),
    ):
        cell(tables, row, 1).dblclick()
        for key in keys:
            value.press(key)
        tables.press("Save")
        expect(page.get_by_role("dialog")).to_be_hidden()
        assert stored(tables, whole)[row][0] == saved
    for row, status in ((0, ""), (1, " padded ")):
        cell(tables, row, 2).dblclick()
        expect(page.get_by_role("combobox", name="Value")).to_have_value(status)
        tables.press("Save")
        expect(page.get_by_role("dialog")).to_be_hidden()
        assert stored(tables, whole)[row][1] == status

    # Copied, pasted, and typed again.
    cell(tables, 1, 1).click()
    page.keyboard.press("Control+c")
    assert page.evaluate("navigator.clipboard.readText()") == "x\ry"
    tables.press("Insert row")
    page.get_by_label("id int").fill("3")
    page.get_by_label("How trail  is filled").select_option("value")
    page.get_by_label("How status is filled").select_option("value")
    paste(tables, page.get_by_label("trail text"), "p\r\nq\n")
    page.get_by_role("combobox", name="status").last.select_option("two  blanks")
    picture(page, "tables-insert-blanks")
    tables.press("Insert")
    expect(page.locator("#rows-range")).to_have_text("Rows 1 to 3")
    assert stored(tables, whole)[2] == ["p\r\nq\n", "two  blanks"]

    tables.press("Filter")
    page.get_by_label("Column", exact=True).select_option("trail ")
    paste(tables, tables.field("Value"), "p\r\nq\n")
    picture(page, "tables-filter-lines")
    tables.field("Value").press("Enter")
    expect(page.locator("#rows-range")).to_have_text("Rows 1 to 1")

    tables.press("New table")
    page.get_by_label("Schema", exact=True).select_option("two  words")
    page.get_by_label("Name", exact=True).fill(" made ")
    tables.press("Create")
    expect(page.get_by_role("heading", name="made")).to_be_visible()
    assert stored(tables, """SELECT to_regclass('"two  words"." made "')::oid > 0""") is True
