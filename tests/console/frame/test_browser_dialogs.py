"""In a browser: every dialog, drawer and the palette, open, on both sizes."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from environments.models import Organization
from tests.cast import member
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, age_proofs, run_sql, sign_up
from tests.console.layout import SIZES, hold_panel
from tests.twofactor.webauthn.authenticator import Authenticator
from tests.twofactor.webauthn.holder import with_passkey

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("over_a_brain"),
]
TEMPLATES = Path(__file__).resolve().parents[3] / "templates" / "console"
DIALOG = re.compile(r'<dialog\s+id="([a-z-]+)"')
ROWS = """
CREATE TABLE lakes (id int PRIMARY KEY, name text);
INSERT INTO lakes VALUES (1, 'Vättern');
SELECT * FROM lakes;
"""
Picture = Callable[[Page, str], None]


class Dialogs:
    """The dialogs of the pages, each looked at while it is open."""

    def __init__(self, visitor: Visitor, picture: Picture, size: str) -> None:
        self.visitor = visitor
        self.seen: set[str] = set()
        self._picture = picture
        self._size = size

    def looked_at(self, name: str) -> None:
        """Assert that a dialog is open, accessible and within the screen; then close it."""
        page = self.visitor.page
        expect(page.locator(f"dialog#{name}[open]")).to_be_visible()
        expect(page.locator(f"dialog#{name} [data-busy]")).to_have_count(0)
        # What is behind it is the page's, which has tests of its own.
        hold_panel(self.visitor, f"{name}, {self._size}", within=f"dialog#{name}")
        self._picture(page, f"dialog-{name}-{self._size}")
        self.seen.add(name)
        page.keyboard.press("Escape")
        expect(page.locator(f"dialog#{name}[open]")).to_have_count(0)

    @contextmanager
    def on(self, path: str) -> Iterator[Callable[[str, str], None]]:
        """Open a page; yield what presses a button there and looks at the dialog it opens."""
        self.visitor.go(f"/console/{path}")

        def press(button: str, dialog: str) -> None:
            self.visitor.press(button)
            self.looked_at(dialog)

        yield press


def of_data(dialogs: Dialogs) -> None:
    """Look at the dialogs of SQL and tables."""
    visitor, page = dialogs.visitor, dialogs.visitor.page
    with dialogs.on("sql") as press:
        run_sql(visitor, ROWS)
        page.get_by_role("grid", name="Rows").focus()
        page.keyboard.press("Control+Home")
        page.keyboard.press("Enter")
        dialogs.looked_at("value")
        press("Save …", "save-dialog")
    with dialogs.on("tables") as press:
        page.locator("[aria-rowindex='2'] [aria-colindex='3']").dblclick()
        dialogs.looked_at("cell")
        press("Insert row", "insert-dialog")
        press("Import CSV", "import-dialog")
        if (tables := page.locator("#tables-side > summary")).is_visible():
            tables.click()
        press("New table", "create-dialog")


def of_objects(dialogs: Dialogs) -> None:
    """Look at the dialogs of buckets, objects, origins and access keys."""
    visitor, page = dialogs.visitor, dialogs.visitor.page
    with dialogs.on("objects") as press:
        press("New bucket", "bucket-dialog")
        visitor.press("New bucket")
        visitor.fill("Name", "media")
        visitor.press("Create")
        press("New folder", "folder-dialog")
        given: Any = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"}
        page.locator("#upload-files").set_input_files([given])
        visitor.sees_status("1 file uploaded")
        page.get_by_role("button", name="notes.txt", exact=True).click()
        expect(page.locator("#preview pre")).to_have_text("words")
        dialogs.looked_at("details")
        page.locator("#upload-files").set_input_files([given])
        dialogs.looked_at("replace")
        press("Purge", "confirm")
    with dialogs.on("objects?view=origins") as press:
        press("New origin", "origin-dialog")
        visitor.press("New origin")
        visitor.fill("Name", "web")
        visitor.page.get_by_label("URL").fill("https://origin.example.com/")
        visitor.press("Create")
        press("Replace the credentials of web", "secret-dialog")
        press("Change the options of web", "origin-options-dialog")
    with dialogs.on("objects?view=keys") as press:
        press("New access key", "key-dialog")


def of_the_team(dialogs: Dialogs) -> None:
    """Look at the dialogs of environments, members and what programs use."""
    page = dialogs.visitor.page
    with dialogs.on("environments") as press:
        press("New environment", "environment-dialog")
        press("Rename: live", "rename-dialog")
        press("Extensions: live", "extensions-dialog")
        dialogs.visitor.press("New environment")
        dialogs.visitor.fill("Id", "staging")
        dialogs.visitor.press("Create")
        expect(page.get_by_role("heading", name="staging")).to_be_visible()
        dialogs.visitor.settle()
        press("Delete: staging", "delete-dialog")
    with dialogs.on("members") as press:
        press("Invite members", "invite-dialog")
        press(f"Change: {EMAIL}", "member-edit")
        press("Reset second factors: bob@example.com", "reset-dialog")
    with dialogs.on("webhooks") as press:
        press("New webhook", "webhook-dialog")
    with dialogs.on("api-keys") as press:
        press("New API key", "api-key-dialog")
    with dialogs.on("audit"):
        page.locator(".events li").first.get_by_role("button").click()
        dialogs.looked_at("event")


def of_the_frame(dialogs: Dialogs) -> None:
    """Look at the palette and the question who it is."""
    visitor, page = dialogs.visitor, dialogs.visitor.page
    with dialogs.on(""):
        page.keyboard.press("Control+k")
        page.keyboard.type("se")
        expect(page.get_by_role("option").first).to_be_visible()
        dialogs.looked_at("palette")
    age_proofs()
    with dialogs.on("objects?view=keys"):
        visitor.press("New access key")
        visitor.press("Create")
        expect(visitor.page.locator("dialog#step-up[open]")).to_be_visible()
        hold_panel(visitor, "step-up", within="dialog#step-up")
        dialogs.seen.add("step-up")


@pytest.mark.parametrize("size", SIZES)
def test_every_dialog_is_accessible_and_fits_the_screen(
    visit: Callable[..., Visitor], picture: Picture, size: str
) -> None:
    visitor = visit(**SIZES[size])
    sign_up(visitor)
    with_passkey(
        member(Organization.objects.get(), "bob@example.com", role="reader"),
        Authenticator(origin=visitor.base),
    )
    dialogs = Dialogs(visitor, picture, size)
    for look in (of_data, of_objects, of_the_team, of_the_frame):
        look(dialogs)
    known = {
        name for path in TEMPLATES.rglob("*.html") for name in DIALOG.findall(path.read_text())
    }
    assert dialogs.seen == known
