"""Press whatever a page has twice, and count what it sends."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from playwright.sync_api import Locator, Route

from tests.console.browser import Visitor
from tests.waiting import wait_until

# A write is refused, so that the page stays as it is and every button can be pressed.
REFUSAL: Final = json.dumps({"type": "about:blank", "title": "Refused", "code": "conflict"})
PART = "main, dialog:not(#palette, #step-up)"
MARK_BUTTONS = f"""() => {{
  for (const each of document.querySelectorAll("main details")) each.open = true;
  const all = [...document.querySelectorAll("{PART}")].flatMap(
    (part) => [...part.querySelectorAll("button")],
  );
  all.forEach((button, number) => button.setAttribute("data-walk", number));
  return all.length;
}}"""
# A press sends what it sends before the second frame after it.
NEXT_FRAMES = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
})"""
IS_IDLE = """() => !document.querySelector("[data-busy], main[aria-busy]")"""
# Or it waits for an answer to a question of its own.
IS_QUIET = """() => document.querySelector("dialog[open]")
  || !document.querySelector("[data-busy], main[aria-busy]")"""
FORMS = (
    "() => [...document.querySelectorAll('main form[id], dialog form[id]')].map((each) => each.id)"
)
# A form that shows what is stored sends what is changed in it.
FILL = """(button) => {
  const isStored = button.form?.dataset.version !== undefined;
  for (const input of button.form?.elements ?? []) {
    const isText = input.matches("input:not([type=checkbox], [type=radio], [type=file]), textarea");
    if (!isText || (input.value && !isStored) || input.closest("[hidden]")) continue;
    input.value = input.value ? `${input.value}1` : {
      email: "erin@example.com", number: "5", date: "2026-01-01", url: "https://example.com/",
    }[input.type] ?? "staging";
  }
  return button.type === "submit" ? button.form.getAttribute("id") : "";
}"""


@dataclass
class Presses:
    """The requests of buttons that are pressed twice at the same time, and double-clicked.

    sent: ids of the forms whose button sent something. repeated: what was sent more than once.
    """

    visitor: Visitor
    sent: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    held: list[Route] = field(default_factory=list)
    is_refusing: bool = False

    def __post_init__(self) -> None:
        self.visitor.page.route("**/v1/**", self._take)

    def walk(self, path: str) -> None:
        """Press every button of a page, those of the dialogs that open too."""
        self.visitor.go(path)
        page = self.visitor.page
        total = page.evaluate(MARK_BUTTONS)
        for number in range(total):
            button = page.locator(f"[data-walk='{number}']")
            if not button.count():
                # Refresh has drawn the rows anew.
                page.evaluate(MARK_BUTTONS)
            if button.count():
                # A menu closes at each press.
                button.evaluate("(each) => each.closest('details')?.setAttribute('open', '')")
            if not button.count() or not button.is_visible() or not button.is_enabled():
                continue
            self._press(path, button)
            self._press_in_dialog(path)
            if page.url != self.visitor.base + path:
                self.visitor.go(path)
                page.evaluate(MARK_BUTTONS)

    def _press_in_dialog(self, path: str) -> None:
        """Press what an open dialog asks for, then close it."""
        page = self.visitor.page
        for _ in range(2):
            opened = page.locator("dialog[open]").last
            if not opened.count():
                return
            button = opened.locator("button[type=submit]:visible, #confirm-yes:visible").last
            if button.count() and button.is_enabled():
                self._press(path, button)
        for _ in range(3):
            if page.locator("dialog[open]").count():
                page.keyboard.press("Escape")
        # What the dialog still loads would have the next press do nothing.
        page.wait_for_function(IS_IDLE)

    def _press(self, path: str, button: Locator) -> None:
        form = button.evaluate(FILL)
        name = (button.text_content() or "").strip()
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        if box is None:
            return
        at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        mouse = self.visitor.page.mouse
        self.is_refusing, before = True, len(self.requests)
        mouse.click(*at)
        mouse.click(*at)
        self._answer()
        # If it is gone by now, there may be another one in its place.
        if button.is_visible():
            mouse.down(click_count=2)
            mouse.up(click_count=2)
            self._answer()
        self.is_refusing = False
        found = Counter(self.requests[before:])
        if found and form:
            self.sent.add(form)
        self.repeated += [f"{path}: {name}: {each}" for each, count in found.items() if count > 1]

    def _take(self, route: Route) -> None:
        request = route.request
        if request.method == "GET" or not self.is_refusing:
            route.continue_()
            return
        self.requests.append(f"{request.method} {request.url}")
        self.held.append(route)

    def _answer(self) -> None:
        """Refuse the requests, until the page has no action in progress except a question."""
        page = self.visitor.page

        def is_quiet() -> bool:
            page.evaluate(NEXT_FRAMES)
            while self.held:
                self.held.pop().fulfill(
                    status=409, content_type="application/problem+json", body=REFUSAL
                )
                page.evaluate(NEXT_FRAMES)
            # A write may follow a read.
            return bool(page.evaluate(IS_QUIET))

        wait_until(is_quiet)
