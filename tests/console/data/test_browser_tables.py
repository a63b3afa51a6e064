"""In a browser: the Tables page, with names that SQL has to quote."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.console.browser import Visitor
from tests.console.data.tables_page import add_filter, cell, elsewhere, open_table, paste, stored
from tests.console.layout import SIZES, hold_panel

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

ON_BOTH_SIZES = pytest.mark.parametrize("tables", SIZES, indirect=True)


@ON_BOTH_SIZES
def test_rows_are_read_page_by_page_in_the_order_of_their_type(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    tables.go("/console/tables")
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
    open_table(tables, "keyless")
    tables.sees("This table has no primary key")
    tables.press("Next")
    expect(cell(tables, 0, 0)).to_have_text("101")
    cell(tables, 0, 0).dblclick()
    expect(page.get_by_role("dialog")).to_contain_text("This table has no primary key")
    expect(page.get_by_role("button", name="Save")).to_be_hidden()


@ON_BOTH_SIZES
def test_filters_are_values_in_chips_that_are_changed_and_removed(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    tables.go("/console/tables")
    page = tables.page
    chips, shown = page.locator("#filter-chips li"), page.locator("#rows-range")
    add_filter(tables, 'va"lue', "is", "'; DROP TABLE keyless; --")
    tables.sees("No row fits.")
    chips.get_by_role("button").first.click()
    page.get_by_label("Comparison").select_option("starts")
    tables.field("Value").fill("v20")
    tables.sees("Rows with NULL in this column are left out.")
    picture(page, "tables-filter")
    tables.press("Apply")
    expect(shown).to_have_text("Rows 1 to 7")
    expect(chips).to_have_text(['va"lue starts with v20'])
    tables.press("Count all")
    tables.sees("7 rows fit")
    add_filter(tables, "price", "more than", "v20")
    tables.sees('invalid input syntax for type numeric: "v20"')
    expect(page.get_by_role("gridcell")).to_have_count(0)
    hold_panel(tables, "filters")
    tables.press("Remove the filter: price more than v20")
    expect(shown).to_have_text("Rows 1 to 7")
    expect(page.locator("#filter-menu > summary")).to_be_focused()


FLAGS = """
CREATE TABLE flags (id int PRIMARY KEY, done boolean, note text);
INSERT INTO flags VALUES (1, true, 'a'), (2, false, 'b'), (3, NULL, NULL)
"""


def test_what_is_not_a_value_may_be_null_and_other_comparisons_say_that_null_is_left_out(
    tables: Visitor,
) -> None:
    elsewhere(tables, FLAGS)
    tables.go("/console/tables?table=flags")
    page = tables.page
    shown = page.locator("#rows-range")
    for column, operator, value, rows, leaves_out in (
        ("done", "is not", "true", "Rows 1 to 2", False),
        ("note", "is not", "a", "Rows 1 to 2", False),
        ("note", "is", "a", "Rows 1 to 1", False),
        ("note", "at least", "a", "Rows 1 to 2", True),
        ("note", "contains", "", "Rows 1 to 2", True),
        ("note", "is NULL", None, "Rows 1 to 1", False),
        ("id", "less than", "2", "Rows 1 to 1", False),
    ):
        page.locator("#filter-menu > summary").click()
        page.get_by_label("Column", exact=True).select_option(column)
        page.get_by_label("Comparison").select_option(label=operator)
        hint = page.get_by_text("Rows with NULL in this column are left out.")
        expect(hint).to_be_visible(visible=leaves_out)
        page.keyboard.press("Escape")
        add_filter(tables, column, operator, value)
        expect(shown).to_have_text(rows)
        page.get_by_role("button", name="Remove the filter").click()
        expect(shown).to_have_text("Rows 1 to 3")


@ON_BOTH_SIZES
def test_the_address_names_what_is_shown(tables: Visitor) -> None:
    tables.go("/console/tables")
    page = tables.page
    shown, heading = page.locator("#rows-range"), page.locator("#table-name")
    add_filter(tables, "price", "at least", "6")
    expect(shown).to_have_text("Rows 1 to 100")
    price = page.get_by_role("columnheader", name="price")
    price.click()
    price.click()
    expect(cell(tables, 0, 2)).to_have_text("205")
    tables.press("Next")
    expect(cell(tables, 0, 2)).to_have_text("105")
    page.locator("#columns-menu > summary").click()
    page.get_by_role("checkbox", name='va"lue').uncheck()
    page.keyboard.press("Escape")
    address = page.url
    assert "environment=live" in address
    page.reload()
    expect(shown).to_have_text("Rows 101 to 200")
    expect(cell(tables, 0, 1)).to_have_text("105")
    expect(page.get_by_role("columnheader", name='va"lue')).to_have_count(0)
    expect(page.locator("#columns-summary")).to_have_text("2 of 3 columns")
    expect(page.locator("#filter-chips li")).to_have_text(["price at least 6"])

    open_table(tables, "keyless")
    tables.press("Next")
    expect(shown).to_have_text("Rows 101 to 101")
    page.go_back()
    expect(shown).to_have_text("Rows 1 to 100")
    page.go_back()
    expect(heading).to_have_text('a"b; drop')
    expect(cell(tables, 0, 1)).to_have_text("105")
    assert page.url == address
    page.go_back()
    expect(shown).to_have_text("Rows 1 to 100")
    expect(page.get_by_role("columnheader", name="price")).to_have_attribute(
        "aria-sort", "descending"
    )
    page.go_forward()
    expect(cell(tables, 0, 1)).to_have_text("105")

    # Fresh rows, and what was dropped, by the button.
    elsewhere(tables, 'UPDATE "a""b; drop" SET price = 105.5 WHERE price = 105')
    tables.press("Refresh")
    expect(cell(tables, 0, 1)).to_have_text("105.5")
    elsewhere(tables, 'DROP TABLE "a""b; drop"')
    tables.press("Refresh")
    expect(page.get_by_role("heading", name='There is no table a"b; drop here')).to_be_visible()
    assert page.url == address
    hold_panel(tables, "a table that is gone")
    open_table(tables, "keyless")


def test_a_link_that_leads_to_nothing_says_so_and_decides_nothing(tables: Visitor) -> None:
    page = tables.page
    gone = "/console/tables?schema=public&table=no_such_table"
    tables.go(gone)
    expect(page.get_by_role("heading", name="There is no table no_such_table here")).to_be_visible()
    tables.is_at(gone)
    tables.go("/console/tables?table=keyless&filter=[[")
    tables.sees("The filter in this address cannot be read")
    expect(page.get_by_role("gridcell")).to_have_count(0)
    tables.press("Remove the filter: a filter that cannot be read")
    expect(page.locator("#rows-range")).to_have_text("Rows 1 to 100")
    tables.go("/console/tables?table=keyless&sort=gone")
    tables.sees("column r.gone does not exist")
    tables.go("/console/tables?table=keyless&environment=sandbox")
    tables.press("Switch to sandbox")
    expect(page.locator("#inside")).to_have_attribute("data-place", "sandbox")
    tables.sees("There is no table keyless here")
    # Where there is none yet, the page leads to the first one.
    tables.go("/console/tables")
    tables.sees("No tables yet")
    hold_panel(tables, "no tables")
    tables.press("New table")
    page.get_by_label("Name", exact=True).fill("first")
    tables.press("Create")
    expect(page.get_by_role("heading", name="first")).to_be_visible()


SEVENTY = (
    "DO $$ BEGIN FOR n IN 1..70 LOOP EXECUTE format('CREATE TABLE t_%s ()', n); END LOOP; END $$"
)


@ON_BOTH_SIZES
def test_the_list_is_at_the_open_table_and_found_in_by_name(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = tables.page
    elsewhere(tables, SEVENTY)
    tables.go("/console/tables?table=t_69")
    opened = page.get_by_role("link", name="t_69")
    summary = page.locator("#tables-side > summary")
    if summary.is_visible():
        expect(summary).to_have_text("Table t_69")
        expect(opened).to_be_hidden()
        summary.click()
    expect(opened).to_be_in_viewport()
    expect(page.get_by_label("Find a table")).to_be_in_viewport()
    expect(page.get_by_role("button", name="New table")).to_be_in_viewport()
    picture(page, "tables-list")
    page.get_by_label("Find a table").fill("t_12")
    page.get_by_role("link").filter(has_text="t_12").click()
    expect(page.get_by_role("heading", name="t_12")).to_be_visible()
    tables.sees("No rows.")


@ON_BOTH_SIZES
def test_a_value_is_changed_and_a_concurrent_change_is_not_overwritten_silently(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    tables.go("/console/tables")
    value = tables.page.get_by_role("textbox", name="Value of")
    cell(tables, 0, 1).dblclick()
    picture(tables.page, "tables-cell")
    hold_panel(tables, "a cell")
    value.fill("it's new")
    value.press("Enter")
    tables.sees_status("is changed.")
    expect(cell(tables, 0, 1)).to_have_text("it's new")
    cell(tables, 0, 1).dblclick()
    elsewhere(tables, """UPDATE "a""b; drop" SET "va""lue" = 'theirs' WHERE price = 1""")
    value.fill("mine")
    value.press("Control+Enter")
    tables.sees("Someone changed this row in the meantime.")
    expect(cell(tables, 0, 1)).to_have_text("theirs")
    tables.press("Save")
    expect(cell(tables, 0, 1)).to_have_text("mine")
    # The key itself, and a row that is gone.
    cell(tables, 0, 0).dblclick()
    value.fill("0")
    tables.press("Save")
    expect(cell(tables, 0, 0)).to_have_text("0")
    cell(tables, 1, 2).dblclick()
    elsewhere(tables, 'DELETE FROM "a""b; drop" WHERE price = 2')
    tables.press("NULL")
    tables.sees("This row is not there any more")


KEYS = """
CREATE TABLE lakes (id int PRIMARY KEY, name text NOT NULL);
INSERT INTO lakes SELECT n, 'Lake ' || n FROM generate_series(1, 30) AS n;
CREATE TABLE trips (id int PRIMARY KEY, lake int REFERENCES lakes, plan jsonb, at timestamptz);
INSERT INTO trips VALUES (1, 3, '{"a": 1.10, "b": [1, {}]}', NULL), (2, NULL, NULL, NULL)
"""


def test_cells_are_edited_by_keys_and_nothing_is_saved_by_itself(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page, keyboard = tables.page, tables.page.keyboard
    elsewhere(tables, KEYS)
    tables.go("/console/tables?table=trips")
    grid, editor = page.get_by_role("grid", name="Rows"), page.locator("#cell")
    value = editor.locator("#cell-value")
    # A foreign key is looked up by what describes its rows.
    cell(tables, 0, 1).click()
    keyboard.type("Lake 2")
    expect(value).to_have_value("Lake 2")
    expect(editor.get_by_role("option")).to_have_count(8)
    keyboard.type("7")
    expect(editor.get_by_role("option")).to_have_text(["27Lake 27"])
    picture(page, "tables-lookup")
    hold_panel(tables, "a foreign key")
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(cell(tables, 0, 1)).to_have_text("27")
    expect(editor).to_be_hidden()
    expect(grid).to_be_focused()
    # Esc leaves the value as it was.
    keyboard.type("5")
    expect(value).to_have_value("5")
    keyboard.press("Escape")
    expect(editor).to_be_hidden()
    expect(cell(tables, 0, 1)).to_have_text("27")
    # JSON has a line for each member, its digits, and is checked before it is sent.
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    expect(value).to_have_value('{\n  "a": 1.10,\n  "b": [\n    1,\n    {}\n  ]\n}')
    picture(page, "tables-json")
    value.fill('{"a": 1.100,}')
    keyboard.press("Enter")
    tables.sees("plan is not valid JSON.")
    # Another cell is not opened over a value that is not saved; the row is marked.
    cell(tables, 1, 0).dblclick()
    tables.sees_status("This value is not saved.")
    expect(value).to_be_focused()
    edited = cell(tables, 0, 2).locator("..").evaluate("(row) => getComputedStyle(row).background")
    other = cell(tables, 1, 2).locator("..").evaluate("(row) => getComputedStyle(row).background")
    assert edited != other
    value.fill('{"a": 1.100}')
    keyboard.press("Control+Enter")
    expect(cell(tables, 0, 2)).to_have_text('{"a": 1.100}')
    cell(tables, 1, 3).dblclick()
    tables.sees("A time without a zone is read as UTC.")
    # One that is as it was is left by a press elsewhere.
    cell(tables, 0, 0).click()
    expect(editor).to_be_hidden()


NEAR_JSON = """
CREATE SCHEMA jsons; CREATE TYPE jsons.pair AS (a int, b text);
CREATE TABLE paths (id int PRIMARY KEY, list jsonb[], way jsonpath, pair jsons.pair);
CREATE VIEW seen AS SELECT way, '{"a": 1}'::jsonb AS plan
"""


def test_only_json_is_checked_and_indented_as_json(tables: Visitor) -> None:
    page = tables.page
    elsewhere(tables, f"{NEAR_JSON} FROM paths")
    tables.go("/console/tables?table=paths")
    tables.press("Insert row")
    fields = page.locator("#insert-fields")
    values = {
        "id int": "1",
        "list jsonb[]": r'{"{\"x\":1}"}',
        "way json": "$.x",
        "pair json": "(1,x)",
    }
    for label, value in values.items():
        fields.get_by_label(label).fill(value)
    tables.press("Insert")
    tables.sees_status("The row is inserted.")
    for column, value in enumerate(('{NULL,"[1, 2]"}', "$.y", "(2,y)"), start=1):
        cell(tables, 0, column).dblclick()
        page.get_by_role("textbox", name="Value of").fill(value)
        tables.press("Save")
        tables.sees_status("is changed.")
    row = "SELECT json_build_array(list::text, way, pair::text) FROM paths"
    assert stored(tables, row) == ['{NULL,"[1, 2]"}', '$."y"', "(2,y)"]
    open_table(tables, "seen")
    for column, is_indented, file in ((0, False, "way.txt"), (1, True, "plan.json")):
        cell(tables, 0, column).dblclick()
        indent = page.get_by_role("button", name="Indent")
        expect(indent).to_be_visible(visible=is_indented)
        with page.expect_download() as download:
            tables.press("Download")
        assert download.value.suggested_filename == file
        tables.press("Close")


ORDERLESS = """
CREATE DOMAIN doc AS json; CREATE TYPE pair AS (a int, b doc);
CREATE DOMAIN public.date AS pg_catalog.date;
CREATE TABLE shapes
  (id int PRIMARY KEY, plan doc, place point, pairs pair[], at timestamptz, day pg_catalog.date);
INSERT INTO shapes VALUES (1, '{}', '(1,2)', NULL, '2026-07-01 12:00+00');
INSERT INTO shapes VALUES (2)
"""


def test_what_a_type_does_not_have_is_not_offered_and_the_zone_of_a_time_is_said(
    tables: Visitor,
) -> None:
    page = tables.page
    elsewhere(tables, ORDERLESS)
    tables.go("/console/tables?table=shapes")
    shown, operators = page.locator("#rows-range"), page.get_by_label("Comparison")
    expect(shown).to_have_text("Rows 1 to 2")
    address = page.url
    for column, declared in (("plan", "doc"), ("place", "point"), ("pairs", "pair[]")):
        head = page.get_by_role("columnheader", name=column)
        head.click()
        tables.sees_status("PostgreSQL has no order for values of the type ")
        tables.sees_status(declared)
        expect(head).not_to_have_attribute("aria-sort", "ascending")
        page.locator("#filter-menu > summary").click()
        expect(operators.locator("option")).to_have_count(10)
        page.get_by_label("Column", exact=True).select_option(column)
        offered = ["contains", "starts with", "is NULL", "is not NULL"]
        expect(operators.locator("option")).to_have_text(offered)
        page.keyboard.press("Escape")
    expect(shown).to_have_text("Rows 1 to 2")
    assert page.url == address

    zone = page.get_by_text("A time without a zone is read as UTC.")
    page.locator("#filter-menu > summary").click()
    page.get_by_label("Column", exact=True).select_option("at")
    expect(zone).to_be_visible()
    operators.select_option("contains")
    expect(zone).to_be_hidden()
    operators.select_option(">=")
    expect(zone).to_be_visible()
    hold_panel(tables, "the filter of a time")
    tables.field("Value").fill("2026-07-01 12:00")
    tables.press("Apply")
    expect(shown).to_have_text("Rows 1 to 1")

    # An address may name an order that the type does not have; its filter can be changed.
    tables.go("/console/tables?table=shapes&sort=plan")
    tables.sees("could not identify an ordering operator")
    page.get_by_role("columnheader", name="plan").click()
    expect(shown).to_have_text("Rows 1 to 2")
    tables.go('/console/tables?table=shapes&filter=[["place","=","(1,2)"]]')
    tables.sees("operator does not exist: point = unknown")
    page.locator("#filter-chips li").get_by_role("button").first.click()
    expect(operators).to_have_value("=")
    operators.select_option("starts")
    tables.press("Apply")
    expect(shown).to_have_text("Rows 1 to 1")


BERTHS = """
CREATE TABLE berths (lake int, pier text, berth int, owner text, PRIMARY KEY (lake, pier, berth));
INSERT INTO berths
SELECT l, p, b, p || ' of ' || l FROM unnest(ARRAY[1, 2]) l, unnest(ARRAY['east', 'west']) p,
generate_series(1, 3) AS b;
CREATE TABLE boats (id int PRIMARY KEY, lake int, pier text, berth int, name text,
FOREIGN KEY (berth, pier, lake) REFERENCES berths (berth, pier, lake));
INSERT INTO boats VALUES (1, 2, 'west', 1, 'Ada')
"""


@ON_BOTH_SIZES
def test_a_key_of_several_columns_is_looked_up_as_one(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page, keyboard = tables.page, tables.page.keyboard
    elsewhere(tables, BERTHS)
    tables.go("/console/tables?table=boats")
    # In a row, the other columns of the key stay: what does not go with them is not offered.
    cell(tables, 0, 3).dblclick()
    options = page.locator("#cell").get_by_role("option")
    expect(options).to_have_text([f"{berth}west · 2 · west of 2" for berth in (1, 2, 3)])
    picture(page, "tables-lookup-key")
    options.nth(2).click()
    expect(cell(tables, 0, 3)).to_have_text("3")
    # In a new row, a choice gives all of them.
    tables.press("Insert row")
    form = page.get_by_role("dialog")
    form.get_by_label("id integer").fill("2")
    form.get_by_label("pier text").click()
    keyboard.type("of 1")
    expect(form.get_by_role("option").first).to_contain_text("east of 1")
    picture(page, "tables-insert-lookup-key")
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(form.get_by_label("lake integer")).to_have_value("1")
    tables.press("Insert")
    expect(page.locator("#rows-range")).to_have_text("Rows 1 to 2")
    kept = "SELECT json_agg(json_build_array(lake, pier) ORDER BY id) FROM boats"
    assert stored(tables, kept) == [[2, "west"], [1, "east"]]


def test_rows_are_inserted_and_deleted(tables: Visitor) -> None:
    tables.go("/console/tables")
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
    tables.sees_status("1 row deleted. 1 row had been changed or deleted in the meantime")
    expect(cell(tables, 0, 0)).to_have_text("1")
    expect(cell(tables, 1, 2)).to_have_text("7")
    expect(page.get_by_role("grid", name="Rows")).to_be_focused()


NOISY = """
CREATE TABLE noisy (id int PRIMARY KEY, v text);
CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE WARNING '% is late', TG_OP USING HINT = 'Be early.';
  RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER warn BEFORE INSERT OR UPDATE OR DELETE ON noisy FOR EACH ROW EXECUTE FUNCTION warn();
"""


def test_what_postgresql_says_of_a_write_is_shown(tables: Visitor) -> None:
    page = tables.page
    elsewhere(tables, NOISY)
    tables.go("/console/tables?table=noisy")
    tables.press("Insert row")
    page.get_by_label("id int").fill("1")
    tables.press("Insert")
    tables.sees_status("The row is inserted. WARNING: INSERT is late. Be early.")
    cell(tables, 0, 1).dblclick()
    page.get_by_role("textbox", name="Value of").fill("x")
    tables.press("Save")
    tables.sees_status("v is changed. WARNING: UPDATE is late. Be early.")
    page.get_by_role("rowheader", name="1", exact=True).click()
    tables.press("Delete 1 row")
    tables.agrees("Delete")
    tables.sees_status("1 row deleted. WARNING: DELETE is late. Be early.")
    tables.press("New table")
    page.get_by_label("Name", exact=True).fill("é" * 40)
    tables.press("Create")
    tables.sees_status("is created. NOTICE: identifier")


MANY = """
CREATE TABLE lakes (id int PRIMARY KEY, name text);
INSERT INTO lakes VALUES (1, 'Vättern');
CREATE TABLE many (
  id bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, name text NOT NULL,
  lake int REFERENCES lakes,
  made timestamptz DEFAULT now(), note text DEFAULT 'none', plan json,
  done boolean DEFAULT false, twice int GENERATED ALWAYS AS (2) STORED
)
"""


@ON_BOTH_SIZES
def test_a_row_is_written_into_open_fields_that_say_what_they_stand_for(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = tables.page
    elsewhere(tables, MANY)
    tables.go("/console/tables?table=many")
    tables.press("Insert row")
    fields = page.locator("#insert-fields")
    expect(fields.locator("textarea").first).to_be_visible()
    placeholders = fields.locator("textarea").evaluate_all(
        "(all) => all.map((each) => each.placeholder)"
    )
    assert placeholders == [
        "default: the next number",
        "needs a value",
        "NULL",
        "default: now()",
        "default: 'none'::text",
        "NULL",
    ]
    expect(fields.get_by_role("combobox", name="done").locator("option")).to_have_text(
        ["default: false", "NULL", "true", "false"]
    )
    tables.press("Insert")
    expect(fields.locator(".error:visible")).to_contain_text("violates not-null constraint")
    tables.press("name: empty text")
    tables.press("note: NULL")
    fields.get_by_label("lake int").click()
    lakes = fields.get_by_role("listbox").get_by_role("option")
    expect(lakes).to_have_text(["1Vättern"])
    picture(page, "tables-insert")
    hold_panel(tables, "a new row")
    lakes.click()
    fields.get_by_label("plan json").fill("{")
    tables.press("Insert")
    tables.sees("plan is not valid JSON.")
    fields.get_by_label("plan json").fill("{}")
    fields.get_by_label("plan json").press("Control+Enter")
    tables.sees_status("The row is inserted.")
    # The first number went to the row that was refused.
    row = "SELECT json_build_array(id, name, lake, made IS NULL, note, plan, done) FROM many"
    assert stored(tables, row) == [2, "", 1, False, None, {}, False]


def test_forms_survive_a_reload_until_they_are_closed(tables: Visitor) -> None:
    tables.go("/console/tables")
    page = tables.page
    value = page.get_by_role("textbox", name="Value of")
    cell(tables, 0, 1).dblclick()
    value.fill("half a thought")
    # Other rows take the place of the cell.
    tables.press("Next")
    tables.sees_status("What you typed into the cell is not saved.")
    expect(value).to_be_hidden()
    tables.go("/console/tables")
    cell(tables, 1, 1).dblclick()
    expect(value).to_have_value("v2")
    tables.press("Cancel")
    cell(tables, 0, 1).dblclick()
    tables.sees("This was typed before, and is not saved yet.")
    expect(value).to_have_value("half a thought")
    tables.press("Cancel")
    cell(tables, 0, 1).dblclick()
    expect(value).to_have_value("v1")
    tables.press("Cancel")
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


def test_a_form_belongs_to_its_tab(tables: Visitor) -> None:
    page = tables.page
    other = tables.context.new_page()
    opens = {
        "Insert row": page.get_by_label("id'; -- int"),
        "New table": page.get_by_label("Column's name").nth(1),
    }
    for button, field in opens.items():
        tables.go("/console/tables")
        tables.press(button)
        initial = field.input_value()
        field.fill("17")
        other.goto(page.url)
        other.get_by_role("button", name=button).click()
        dialog = other.get_by_role("dialog")
        expect(dialog.locator("input:visible, textarea:visible").nth(0)).to_be_visible()
        typed = dialog.locator("input, textarea").evaluate_all(
            "(all) => all.map((each) => each.value)"
        )
        assert "17" not in typed
        dialog.get_by_role("button", name="Cancel").click()
        tables.go("/console/tables")
        tables.press(button)
        expect(field).to_have_value("17")
        tables.press("Cancel")
        tables.press(button)
        expect(field).to_have_value(initial)
    tables.go("/console/tables")
    value = page.get_by_role("textbox", name="Value of")
    cell(tables, 0, 1).dblclick()
    value.fill("half a thought")
    tables.press("Next")
    other.goto(f"{tables.base}/console/tables")
    other.locator("[aria-rowindex='2'] [aria-colindex='3']").dblclick()
    expect(other.get_by_role("textbox", name="Value of")).to_have_value("v1")


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
"""


def test_values_pass_through_the_page_byte_for_byte(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = tables.page
    elsewhere(tables, BLANKS)
    tables.go("/console/tables?schema=public&table=a+blank+")
    value, mixed = page.get_by_role("textbox", name="Value of"), 'a\r\n\r\nb\nc "q"'
    whole = """SELECT json_agg(json_build_array("trail ", status) ORDER BY id) FROM "a blank " """

    # What was not touched, and what was touched elsewhere.
    for row, keys, saved in (
        (0, (), mixed),
        (0, ("Control+End", "!", "ArrowUp", "End", "Shift+Enter"), 'a\r\n\r\nb\n\r\nc "q"!'),
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
        expect(page.get_by_role("combobox", name="Value of")).to_have_value(status)
        tables.press("Save")
        expect(page.get_by_role("dialog")).to_be_hidden()
        assert stored(tables, whole)[row][1] == status

    # Copied, pasted, and typed again.
    cell(tables, 1, 1).click()
    page.keyboard.press("Control+c")
    assert page.evaluate("navigator.clipboard.readText()") == "x\ry"
    tables.press("Insert row")
    page.get_by_label("id int").fill("3")
    paste(tables, page.get_by_role("textbox", name="trail text"), "p\r\nq\n")
    page.get_by_role("combobox", name="status").select_option("two  blanks")
    picture(page, "tables-insert-blanks")
    tables.press("Insert")
    expect(page.locator("#rows-range")).to_have_text("Rows 1 to 3")
    assert stored(tables, whole)[2] == ["p\r\nq\n", "two  blanks"]

    page.locator("#filter-menu > summary").click()
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


COPIED = """
CREATE DOMAIN answer AS boolean; CREATE DOMAIN kept AS answer NOT NULL;
CREATE TABLE copied (id int PRIMARY KEY, ready kept, t text);
INSERT INTO copied VALUES (1, true, 'x'), (2, false, 'y');
"""


@ON_BOTH_SIZES
def test_rows_are_copied_as_other_programs_want_them(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = tables.page
    elsewhere(tables, COPIED)
    tables.go("/console/tables?schema=public&table=copied")
    expect(page.get_by_role("columnheader", name="ready")).to_contain_text("kept")
    assert page.get_by_role("gridcell").all_text_contents() == ["1", "true", "x", "2", "false", "y"]

    def copied(choice: str) -> str:
        page.locator("#copy-menu > summary").click()
        picture(page, "tables-copy")
        tables.press(choice)
        tables.sees_status(f"copied as {choice.removeprefix('As ')}.")
        return str(page.evaluate("navigator.clipboard.readText()"))

    rows = ['{"id":1,"ready":true,"t":"x"}', '{"id":2,"ready":false,"t":"y"}']
    assert copied("As JSON") == f"[\n{rows[0]},\n{rows[1]}\n]\n"
    # Of several selected cells, those; of marked rows, all of them.
    cell(tables, 0, 1).click()
    cell(tables, 1, 2).click(modifiers=["Shift"])
    assert copied("As CSV") == "ready,t\ntrue,x\nfalse,y\n"
    page.get_by_role("rowheader", name="2", exact=True).click()
    assert copied("As JSON") == f"[\n{rows[1]}\n]\n"
    # What is offered for the domain's type is offered for the domain.
    cell(tables, 0, 1).dblclick()
    page.get_by_role("combobox", name="Value of ready").select_option("false")
    tables.press("Save")
    expect(cell(tables, 0, 1)).to_have_text("false")
