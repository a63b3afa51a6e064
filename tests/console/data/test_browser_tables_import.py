"""In a browser: a CSV file into a table, on the Tables page."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.console.browser import Visitor, held
from tests.console.data.tables_page import cell, elsewhere, stored
from tests.console.layout import SIZES, hold_panel

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

ON_BOTH_SIZES = pytest.mark.parametrize("tables", SIZES, indirect=True)


def test_a_table_is_created_and_filled_from_a_file(tables: Visitor, tmp_path: Path) -> None:
    tables.go("/console/tables")
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


FORMS = {"import": "import-form", "insert": "insert-form", "change": "cell-form"}
DONE = {
    "import": "1 row imported.",
    "insert": "The row is inserted.",
    "change": "n is changed.",
    "delete": "1 row deleted.",
}
NOTES = """
CREATE TABLE notes (
  id int PRIMARY KEY, title text NOT NULL, made timestamptz DEFAULT now(), "to do" text,
  number bigint GENERATED ALWAYS AS IDENTITY, twice int GENERATED ALWAYS AS (2) STORED
)
"""


@ON_BOTH_SIZES
def test_the_columns_of_a_file_are_matched_previewed_and_chosen(
    tables: Visitor, tmp_path: Path, picture: Callable[[Page, str], None]
) -> None:
    page = tables.page
    elsewhere(tables, NOTES)
    tables.go("/console/tables?table=notes")
    file = tmp_path / "notes.csv"
    file.write_text('ID;To-Do;Betreff;extra\n1;"a; ""b""\nc";Vättern;x\n2;;"";y\n')
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    expect(page.get_by_label("Between values")).to_have_value(";")
    expect(page.get_by_label("ID goes into")).to_have_value("id")
    expect(page.get_by_label("To-Do goes into")).to_have_value("to do")
    preview = page.locator("#import-rows tr").nth(1).locator("td")
    expect(preview).to_have_text(["2", "NULL", "empty", "y"])
    left = page.locator("#import-left")
    expect(left).to_have_text(
        "Not in the file: title needs a value, made gets now(), number gets the next number. "
        "2 columns of the file are not imported."
    )
    tables.press("Import")
    tables.sees("title needs a value in each row")
    page.get_by_label("Betreff goes into").select_option("title")
    expect(left).not_to_contain_text("title")
    page.get_by_label("extra goes into").select_option("made")
    expect(left).to_contain_text("A time without a zone is read as UTC.")
    page.get_by_label("extra goes into").select_option("not imported")
    expect(left).not_to_contain_text("A time")
    picture(page, "tables-import")
    hold_panel(tables, "an import")
    tables.press("Import")
    tables.sees_status("2 rows imported.")
    rows = (
        """SELECT json_agg(json_build_array(id, title, made IS NULL, "to do", number)) FROM notes"""
    )
    assert stored(tables, rows) == [[1, "Vättern", False, 'a; "b"\nc', 1], [2, "", False, None, 2]]

    # Without names the order decides.
    file.write_text("3|x\n")
    tables.press("Import CSV")
    page.get_by_label("File (UTF-8)").set_input_files(file)
    page.get_by_label("First line").select_option("is a row")
    expect(page.get_by_label("Column 2 goes into")).to_have_value("title")
    tables.press("Import")
    tables.sees_status("1 row imported.")
    for content, said in (
        (b"id,title\n4,\xe4\n", "This file is not UTF-8."),
        (b"", "This file is empty."),
    ):
        file.write_bytes(content)
        tables.press("Import CSV")
        page.get_by_label("File (UTF-8)").set_input_files(file)
        tables.sees(said)
        page.locator("#import-close").click()


def test_a_file_is_imported_once_however_often_it_is_sent(tables: Visitor, tmp_path: Path) -> None:
    page = tables.page
    file = tmp_path / "rows.csv"
    file.write_text("n\n7\n8\n")
    tables.go("/console/tables?table=keyless")
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
    tables.go("/console/tables?table=keyless")
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
    tables.go("/console/tables?table=keyless")
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


@pytest.mark.parametrize("act", ["import", "insert", "change", "delete"])
def test_a_write_without_an_answer_asks_before_the_page_is_left(
    tables: Visitor, tmp_path: Path, act: str
) -> None:
    page = tables.page
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    elsewhere(tables, "CREATE TABLE slow (n int PRIMARY KEY); INSERT INTO slow VALUES (1)")
    tables.go("/console/tables?table=slow")
    with held(tables, "/v1/sql(/import|$)"):
        if act == "import":
            file = tmp_path / "rows.csv"
            file.write_text("n\n7\n")
            tables.press("Import CSV")
            page.get_by_label("File (UTF-8)").set_input_files(file)
        elif act == "insert":
            tables.press("Insert row")
            page.get_by_label("n int").fill("7")
        elif act == "change":
            cell(tables, 0, 0).dblclick()
            page.get_by_role("textbox", name="Value of").fill("7")
        else:
            page.locator("[aria-rowindex='2'] [role=rowheader]").click()
            tables.press("Delete 1 row")
        with page.expect_request(re.compile("/v1/sql")):
            if act == "delete":
                tables.agrees("Delete")
            else:
                page.locator(f"#{FORMS[act]} [type=submit]").click()
        with page.expect_event("dialog"):
            page.evaluate("location.assign('/console/')")
    tables.sees_status(DONE[act])
    tables.settle()
    # Nothing is under way any more.
    tables.go("/console/")
    assert asked == ["beforeunload"]


def test_a_file_whose_answer_was_lost_is_asked_about(tables: Visitor, tmp_path: Path) -> None:
    page = tables.page
    file = tmp_path / "rows.csv"
    file.write_text("n\n7\n")
    tables.go("/console/tables?table=keyless")
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
