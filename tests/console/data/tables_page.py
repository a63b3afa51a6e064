"""Steps on the Tables page."""

from typing import Any

from playwright.sync_api import Locator, expect

from tests.console.browser import Visitor
from tests.console.journeys import post

# Every name would end a statement that did not quote it.
TABLES = """
CREATE TABLE "a""b; drop" ("id'; --" int PRIMARY KEY, "va""lue" text, price numeric);
INSERT INTO "a""b; drop" SELECT n, 'v' || n, n FROM generate_series(1, 205) AS n;
CREATE TABLE keyless (n int);
INSERT INTO keyless SELECT n FROM generate_series(1, 101) AS n;
"""


def cell(visitor: Visitor, row: int, column: int) -> Locator:
    """Return a cell by its place, from 0."""
    return visitor.page.locator(f"[aria-rowindex='{row + 2}'] [aria-colindex='{column + 2}']")


def open_table(visitor: Visitor, name: str) -> None:
    """Open a table from the list, which is closed on a phone."""
    opened = visitor.page.locator("#tables-side > summary")
    if opened.is_visible():
        opened.click()
    visitor.page.get_by_role("link", name=name).click()
    expect(visitor.page.get_by_role("heading", name=name)).to_be_visible()


def add_filter(visitor: Visitor, column: str, operator: str, value: str | None = None) -> None:
    """Add a filter; of a value that is chosen from a list, if its field is a list."""
    visitor.page.locator("#filter-menu > summary").click()
    visitor.page.get_by_label("Column", exact=True).select_option(column)
    visitor.page.get_by_label("Comparison").select_option(label=operator)
    if value is not None:
        field = visitor.field("Value")
        is_list = field.evaluate("(each) => each.localName === 'select'")
        (field.select_option if is_list else field.fill)(value)
    visitor.press("Apply")


def elsewhere(visitor: Visitor, query: str) -> None:
    """Run a statement as another client would, with the session of the page."""
    answer = post(visitor, "/v1/sql", {"query": query})
    assert answer.ok, answer.text()


def stored(visitor: Visitor, query: str) -> Any:
    """Return the first value of a query, as another client reads it."""
    return post(visitor, "/v1/sql", {"query": query, "rows": "arrays"}).json()["rows"][0][0]


def paste(visitor: Visitor, field: Locator, text: str) -> None:
    """Paste a text into a field, in place of what it has."""
    visitor.page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    field.press("Control+a")
    field.press("Control+v")
