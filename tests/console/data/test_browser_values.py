"""In a browser: values are PostgreSQL's text in the grid, in the drawer, in copies and in files."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import Visitor
from tests.console.data.tables_page import elsewhere, stored
from tests.console.journeys import run_sql, sign_up
from tests.console.layout import SIZES

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

ON_BOTH_SIZES = pytest.mark.parametrize("sql", SIZES, indirect=True)

# Each expression, and the text that PostgreSQL has of it.
SHOWN = {
    """'{"a":1,  "a":2.50}'::json""": '{"a":1,  "a":2.50}',
    "'null'::jsonb": "null",
    "'[12345678901234567890, 1.10]'::jsonb": "[12345678901234567890, 1.10]",
    "ARRAY['a b', 'c,d', NULL, '']": '{"a b","c,d",NULL,""}',
    "'[0:1]={1,2}'::int[]": "[0:1]={1,2}",
    "'2026-11-28 10:30+00'::timestamptz": "2026-11-28 10:30:00+00",
    "'empty'::int4range": "empty",
    "1e20::float8": "1e+20",
    "'-0'::float8": "-0",
    "9007199254740993": "9007199254740993",
    "'192.0.2.7'::inet": "192.0.2.7",
    "'ab'::char(4)": "ab  ",
    "'NULL'::text": "NULL",
    "true": "true",
    "E'x\\r\\ny\\tz'": "x\r\ny\tz",
}


@pytest.fixture
def sql(visit: Callable[..., Visitor], request: pytest.FixtureRequest) -> Visitor:
    """Return a visitor on the SQL page."""
    size = SIZES[getattr(request, "param", "wide")]
    visitor = visit(**size, permissions=["clipboard-read", "clipboard-write"])
    sign_up(visitor)
    visitor.go("/console/sql")
    return visitor


def copied(visitor: Visitor) -> str:
    """Copy the selection and return the text in the clipboard."""
    visitor.page.evaluate("document.getElementById('status').textContent = ''")
    visitor.page.keyboard.press("Control+c")
    visitor.sees_status("Copied.")
    return str(visitor.page.evaluate("navigator.clipboard.readText()"))


def test_values_are_postgresqls_text_wherever_they_go(
    sql: Visitor, picture: Callable[[Page, str], None]
) -> None:
    page = sql.page
    page.set_viewport_size({"width": 2600, "height": 900})
    run_sql(sql, f"SELECT NULL::jsonb AS a, '' AS b, {', '.join(SHOWN)}")
    cells = page.get_by_role("gridcell")
    expect(cells).to_have_count(len(SHOWN) + 2)
    shown = [*SHOWN.values()]
    assert cells.all_text_contents() == ["NULL", "empty", *shown[:-1], "x y z"]
    # Words of the page have a frame, which no value has.
    expect(page.locator(".grid-word")).to_have_text(["NULL", "empty"])
    picture(page, "sql-values")

    # Copied: NULL is nothing, an empty text is not; one value is itself.
    page.get_by_role("rowheader", name="1", exact=True).click()
    quoted = [f'"{text.replace(chr(34), chr(34) * 2)}"' for text in shown]
    texts = [
        long if any(mark in text for mark in '"\n\t') else text
        for text, long in zip(shown, quoted, strict=True)
    ]
    assert copied(sql) == "\t".join(["", '""', *texts])
    for at, text in ((0, "NULL"), (1, ""), (2, shown[0]), (len(shown) + 1, shown[-1])):
        cells.nth(at).click()
        assert copied(sql) == text

    # In a file.
    page.locator("#export-menu summary").click()
    with page.expect_download() as download:
        sql.press("Rows shown, NDJSON")
    line = download.value.path().read_text()
    assert line.startswith('{"a":null,"b":"","json":{"a":1,  "a":2.50},"jsonb":null,')
    values = json.loads(line, parse_float=str, parse_int=str)
    assert values["float8"] == "1e+20"
    assert values["array"] == shown[3]

    # In the drawer, and with a line for each member.
    cells.nth(2).dblclick()
    opened = page.locator("#value-text")
    expect(opened).to_have_text(shown[0])
    sql.press("Indent")
    assert opened.text_content() == '{\n  "a": 1,\n  "a": 2.50\n}'
    sql.press("Copy")
    sql.sees_status("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == shown[0]


def test_the_page_tables_shows_the_same_texts(visit: Callable[..., Visitor]) -> None:
    visitor = visit(viewport={"width": 2600, "height": 900})
    page = visitor.page
    sign_up(visitor)
    columns = ", ".join(f"{each} AS c{number}" for number, each in enumerate(SHOWN))
    elsewhere(
        visitor,
        f"CREATE TABLE shown AS SELECT 1 AS id, {columns}; ALTER TABLE shown ADD PRIMARY KEY (id)",
    )
    visitor.go("/console/tables?schema=public&table=shown")
    cells = page.get_by_role("gridcell")
    expect(cells).to_have_count(len(SHOWN) + 1)
    assert cells.all_text_contents() == ["1", *list(SHOWN.values())[:-1], "x y z"]
    # What was not touched stays, blanks of JSON as well.
    cells.nth(1).dblclick()
    page.keyboard.press("Control+End")
    page.keyboard.type(" ")
    page.keyboard.press("Enter")
    visitor.sees_status("c0 is changed.")
    assert stored(visitor, "SELECT c0::text FROM shown") == '{"a":1,  "a":2.50} '


def test_a_wide_result_has_few_columns_in_the_document(sql: Visitor) -> None:
    page = sql.page
    columns = ", ".join(f"n * {number} AS c{number}" for number in range(1600))
    run_sql(sql, f"SELECT {columns} FROM generate_series(1, 40) AS n")  # noqa: S608  # numbers
    grid = page.get_by_role("grid", name="Rows")
    expect(grid).to_have_attribute("aria-colcount", "1601")
    grid.focus()
    page.keyboard.press("End")
    last = page.get_by_role("columnheader", name="c1599")
    expect(last).to_be_in_viewport()
    active = page.locator(f"#{grid.get_attribute('aria-activedescendant')}")
    expect(active).to_have_text("1599")
    # A cell is below its head.
    assert active.bounding_box()["x"] == last.bounding_box()["x"]  # type: ignore[index]  # it is shown
    assert page.get_by_role("gridcell").count() < 3000
    page.keyboard.press("Home")
    expect(page.get_by_role("columnheader", name="c0int4")).to_be_in_viewport()
    page.mouse.move(900, 600)
    page.mouse.wheel(6000, 0)
    expect(page.get_by_role("columnheader", name="c72int4")).to_be_in_viewport()


@ON_BOTH_SIZES
def test_rows_are_taken_by_their_numbers(sql: Visitor) -> None:
    page = sql.page
    run_sql(sql, "SELECT n, n * 2 AS m FROM generate_series(1, 9) AS n")
    page.get_by_role("rowheader", name="2", exact=True).click()
    page.get_by_role("rowheader", name="4", exact=True).click(modifiers=["Shift"])
    assert copied(sql) == "2\t4\n3\t6\n4\t8"
    page.get_by_role("columnheader", name="Row", exact=True).click()
    assert copied(sql).startswith("n\tm\n1\t2\n")
