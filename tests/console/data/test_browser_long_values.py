"""In a browser: a long value keeps no row from being seen, and is read when it is opened."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Visitor
from tests.console.data.tables_page import cell, elsewhere, stored
from tests.console.data.test_browser_values import copied
from tests.console.journeys import run_sql, sign_up
from tests.console.layout import SIZES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

TABLES = """
CREATE TABLE huge (id int PRIMARY KEY, v text);
INSERT INTO huge SELECT n, 'v' || n FROM generate_series(1, 300) AS n;
UPDATE huge SET v = repeat('é', 1500000) || id WHERE id BETWEEN 5 AND 7;
UPDATE huge SET v = repeat('x', 20000000) WHERE id = 150;
UPDATE huge SET v = repeat('a', 99999) || E'\\r\\nend' WHERE id = 2;
CREATE TABLE kinds (k text PRIMARY KEY, b bytea, j jsonb, a text[], n numeric);
INSERT INTO kinds SELECT repeat('k', 180000) || chr(64 + n),
  sha256('x') || convert_to(repeat('b', CASE n WHEN 60 THEN 9000000 ELSE 1 END), 'UTF8'),
  jsonb_build_object('a', repeat('j', 20000)),
  array_fill('t'::text, ARRAY[9000]), 10::numeric ^ 9000
FROM generate_series(1, 60) AS n;
CREATE TABLE sorted (id int PRIMARY KEY, v text);
INSERT INTO sorted SELECT 300 - n, to_char(n, '000') || repeat('x', 5000)
FROM generate_series(1, 205) AS n;
"""


ON_BOTH_SIZES = pytest.mark.parametrize("tables", SIZES, indirect=True)


@pytest.fixture
def tables(visit: Callable[..., Visitor], request: pytest.FixtureRequest) -> Visitor:
    """Return a visitor of an environment with long values, before the first page."""
    size = SIZES[getattr(request, "param", "wide")]
    visitor = visit(**size, permissions=["clipboard-read", "clipboard-write"])
    sign_up(visitor)
    elsewhere(visitor, TABLES)
    return visitor


@ON_BOTH_SIZES
def test_long_values_are_seen_in_part_and_read_when_they_are_opened(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page, status = tables.page, tables.page.locator("#rows-range")
    tables.go("/console/tables?schema=public&table=huge")
    expect(status).to_have_text("Rows 1 to 100")
    expect(cell(tables, 4, 1)).to_contain_text("3 MB")
    picture(page, "tables-long")

    # Too long to be saved here, which is said before anything is typed.
    cell(tables, 4, 1).dblclick()
    tables.sees("A value of 3 MB cannot be changed here")
    expect(page.locator("#value-part")).to_have_text("The first 100,000 characters are shown.")
    picture(page, "tables-long-value")
    tables.press("Show more")
    expect(page.locator("#value-part")).to_have_text("The first 200,000 characters are shown.")
    with page.expect_download() as download:
        tables.press("Download")
    assert download.value.path().read_text() == "é" * 1_500_000 + "5"
    tables.press("Close")

    # Read as a whole, and changed.
    cell(tables, 1, 1).dblclick()
    field = page.get_by_role("textbox", name="Value of v in row 2")
    field.press("Control+End")
    page.keyboard.type("!")
    field.press("Enter")
    tables.sees_status("v is changed.")
    assert stored(tables, "SELECT right(v, 7) FROM huge WHERE id = 2") == "a\r\nend!"

    # Changed by someone else meanwhile: what is there now is not all in the sentence.
    cell(tables, 0, 1).dblclick()
    elsewhere(tables, "UPDATE huge SET v = repeat('y', 5000) WHERE id = 1")
    field = page.get_by_role("textbox", name="Value of v in row 1")
    field.fill("mine")
    field.press("Enter")
    start = "y" * 300
    tables.sees(f"v is now “{start}…”, the beginning of a value of 5 kB. Nothing was saved")
    tables.press("Cancel")

    # Copied: all of it, though the cell has the beginning.
    cell(tables, 3, 1).click()
    cell(tables, 4, 1).click(modifiers=["Shift"])
    assert copied(tables) == "v4\n" + "é" * 1_500_000 + "5"

    elsewhere(tables, "UPDATE huge SET v = 'short' WHERE id = 7")
    cell(tables, 6, 1).click()
    page.keyboard.press("Control+c")
    tables.sees_status("This row is another one now")

    # The next pages, past the longest.
    tables.press("Next")
    expect(status).to_have_text("Rows 101 to 200")
    expect(cell(tables, 0, 0)).to_have_text("101")
    tables.press("Next")
    expect(status).to_have_text("Rows 201 to 300")
    expect(cell(tables, 0, 0)).to_have_text("201")
    # In the order of long values.
    tables.go("/console/tables?schema=public&table=sorted&sort=v")
    expect(cell(tables, 0, 0)).to_have_text("299")
    tables.press("Next")
    expect(cell(tables, 0, 0)).to_have_text("199")
    tables.press("Next")
    expect(status).to_have_text("Rows 201 to 205")


def test_a_query_of_long_values_is_read_in_part(
    tables: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page, summary = tables.page, tables.page.locator("#result-summary")
    tables.go("/console/sql")
    run_sql(tables, "-- all\nSELECT id, id AS id, v FROM huge ORDER BY id; -- of them")
    expect(page.locator("#sql-problem")).to_contain_text("Single rows must stay well below")
    picture(page, "sql-too-long")
    tables.press("Read long values in part")
    expect(summary).to_contain_text("300 rows")
    expect(summary).to_contain_text("long values in part")
    expect(cell(tables, 4, 2)).to_contain_text("3 MB")
    cell(tables, 4, 2).click()
    assert copied(tables) == "é" * 1_500_000 + "5"
    # A result that is cut says how many rows it has, and offers the same.
    run_sql(tables, "SELECT v FROM huge WHERE id < 150 ORDER BY id")
    expect(summary).to_contain_text("Cut: only the first")
    tables.press("Read long values in part")
    expect(summary).to_contain_text("149 rows")
    run_sql(tables, "SELECT 1")
    expect(summary).to_contain_text("1 row,")
    expect(page.get_by_role("button", name="Read long values in part")).to_be_hidden()


def test_every_type_may_be_long_and_the_key_too(tables: Visitor) -> None:
    page, status = tables.page, tables.page.locator("#rows-range")
    tables.go("/console/tables?schema=public&table=kinds")
    seen = 0
    # Keys are read as a whole, so there are fewer rows on a page, and none is left out.
    while seen < 60:
        expect(status).to_contain_text(f"Rows {seen + 1} to ")
        seen = int((status.text_content() or "").split(" to ")[1])
        if seen < 60:
            tables.press("Next")
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    page.get_by_role("grid").focus()
    page.keyboard.press("Control+End")
    expect(page.get_by_role("rowheader", name="60", exact=True)).to_be_visible()
    last = page.get_by_role("row").last
    expect(last.locator(".grid-word")).to_have_text(["18 MB", "20 kB", "18 kB", "9 kB"])
    last.locator("[aria-colindex='3']").dblclick()
    expect(page.locator("#value-text")).to_contain_text(
        "\\x2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    )
    tables.press("Close")
    for column, (start, length) in {
        "4": ('{"a": "jj', 20_009),
        "5": ("{t,t", 18_001),
        "6": ("1000", 9_001),
    }.items():
        last.locator(f"[aria-colindex='{column}']").click()
        text = copied(tables)
        assert text.startswith(start)
        assert abs(len(text) - length) < 5, column
