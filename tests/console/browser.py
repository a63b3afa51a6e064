"""Chromium driven by Playwright: the base of every browser test."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Locator, Page, Playwright, Route, expect

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The shell opens no windows behind the pages, which halves what a test takes.
PROGRAMS = ("chromium-headless-shell", "chromium")
MISSING = (
    "The browser tests need Chromium: apt-get install chromium-headless-shell"
    " (they are never skipped)."
)
# Pages show refused requests themselves; the browser's line about them is not an error.
REFUSALS = re.compile(r"the server responded with a status of (4\d\d|503)")
# For actions and for expected texts: next to other tests a page may take seconds.
TIMEOUT_MS = 15_000
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def launch(playwright: Playwright) -> Browser:
    """Start Debian's Chromium, headless, with an empty profile.

    Raises RuntimeError where it is not installed.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise RuntimeError(MISSING)
    expect.set_options(timeout=TIMEOUT_MS)
    return playwright.chromium.launch(executable_path=program, args=ARGUMENTS)


@dataclass
class Visitor:
    """A person with their own browser on the console's pages."""

    context: BrowserContext
    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Open a page and wait until it has loaded its data."""
        self.page.goto(self.base + path)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has loaded its data."""
        expect(self.page.locator("main:not([aria-busy])")).to_be_visible()
        # Buttons do nothing while an action is in progress.
        expect(self.page.locator("[data-busy]")).to_have_count(0)

    def fill(self, label: str, text: str) -> None:
        """Type into a field, by its label."""
        self.field(label).fill(text)

    def field(self, label: str) -> Locator:
        """Return the visible field of a label."""
        return self.page.get_by_label(label, exact=True).locator("visible=true")

    def press(self, name: str) -> None:
        """Press a button, by its name; one of a row's menu once that is open."""
        button = self.page.get_by_role("button", name=name, exact=True)
        hidden = self.page.get_by_role("button", name=name, exact=True, include_hidden=True)
        menu = self.page.locator("details.menu.end:not([open])", has=hidden)
        expect(button.or_(menu).first).to_be_visible()
        if not button.is_visible():
            menu.locator("summary").click()
        button.click()

    def agrees(self, name: str) -> None:
        """Press a button of the confirmation dialog."""
        dialog = self.page.get_by_role("alertdialog")
        dialog.get_by_role("button", name=name, exact=True).click()

    def sees(self, text: str) -> None:
        """Assert that the page shows a text."""
        expect(self.page.get_by_text(text).locator("visible=true").first).to_be_visible()

    def is_at(self, path: str) -> None:
        """Assert that the browser is at a page."""
        expect(self.page).to_have_url(self.base + path)
        self.settle()

    def sees_status(self, text: str) -> None:
        """Assert that the status line shows a text."""
        expect(self.page.locator("#status")).to_contain_text(text)

    def cookies(self) -> dict[str, Any]:
        """Return the browser's cookies by name."""
        return {each["name"]: each for each in self.context.cookies()}

    def without_autofill(self) -> None:
        """Turn off passkey autofill, with which the virtual passkey would sign in immediately."""
        method = "PublicKeyCredential.isConditionalMediationAvailable"
        self.page.add_init_script(f"{method} = async () => false")

    def virtual_authenticator(self) -> str:
        """Add a virtual passkey store with user verification to the page."""
        session = self.context.new_cdp_session(self.page)
        session.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "ctap2Version": "ctap2_1",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        answer = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        return str(answer["authenticatorId"])


@contextmanager
def visiting(browser: Browser, base: str, **options: Any) -> Iterator[Visitor]:
    """Return a visitor with an empty browser; no page may log an error or break its policy."""
    context = browser.new_context(**options)
    context.set_default_timeout(TIMEOUT_MS)
    visitor = Visitor(context, context.new_page(), base)
    watch(visitor.page, visitor.faults)
    try:
        yield visitor
    finally:
        context.close()
    assert not visitor.faults, visitor.faults


@contextmanager
def held(visitor: Visitor, address: str) -> Iterator[None]:
    """Keep the requests to an address waiting until the block is left."""
    waiting: list[Route] = []
    is_held = True

    def keep(route: Route) -> None:
        if is_held:
            waiting.append(route)
        else:
            route.continue_()

    visitor.page.route(re.compile(address), keep)
    yield
    is_held = False
    for route in waiting:
        route.continue_()


def watch(page: Page, faults: list[str]) -> None:
    """Record errors that a page logs or throws, and what its policy blocks."""

    def note(message: Any) -> None:
        if message.type in {"error", "warning"} and not REFUSALS.search(message.text):
            faults.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: faults.append(str(error)))


def keep(page: Page, folder: Path, name: str) -> None:
    """Save a screenshot of the whole page in light and in dark mode."""
    before = page.viewport_size or {"width": 1280, "height": 720}
    height = page.evaluate("document.documentElement.scrollHeight")
    # Taller instead of `full_page`, so that dialogs and the status line stay in their places.
    page.set_viewport_size({"width": before["width"], "height": max(before["height"], height)})
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=folder / f"{name}-{scheme}.png", animations="disabled")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(before)
