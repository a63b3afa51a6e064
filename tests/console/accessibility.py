"""axe-core's rules of accessibility, applied to the page shown."""

from typing import Final

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

AXE: Final = Axe()
MAX_HTML_CHARS: Final = 200


def violations(page: Page) -> list[str]:
    """Return a line for each element that breaks a rule, of any impact.

    Source: https://github.com/dequelabs/axe-core/blob/develop/doc/rule-descriptions.md
    """
    return [
        f"{rule['id']}: {node['html'][:MAX_HTML_CHARS]}"
        for rule in AXE.run(page).response["violations"]
        for node in rule["nodes"]
    ]
