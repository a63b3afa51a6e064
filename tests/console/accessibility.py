"""axe-core's rules of accessibility, applied to the page shown."""

from typing import Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.console.browser import Scheme

AXE: Final = Axe()
ALL: Final = {"resultTypes": ["violations"]}
# The other rules read the document, which is the same in light and in dark mode.
OF_COLOURS: Final = ALL | {"runOnly": ["color-contrast", "link-in-text-block"]}
MAX_HTML_CHARS: Final = 200


def violations(page: Page, *, scheme: Scheme = "light", within: str = "") -> list[str]:
    """Return a line for each element that breaks a rule, of any impact; in dark mode of colours.

    within: the selector of a part of the page; '' for all of it.

    Source: https://github.com/dequelabs/axe-core/blob/develop/doc/rule-descriptions.md
    """
    options = ALL if scheme == "light" else OF_COLOURS
    return [
        f"{rule['id']}: {node['html'][:MAX_HTML_CHARS]}"
        for rule in AXE.run(page, within, options).response["violations"]
        for node in rule["nodes"]
    ]
