"""The site of `make docs`, opened as files: no server, no network."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.console.browser import launch
from tests.documents.blocks import ROOT

pytestmark = pytest.mark.browser


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return the folder of the built site."""
    folder = tmp_path / "site"
    built = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Yield a Chromium for one test: while Playwright's loop is there no other one can run."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


def test_the_search_answers_without_a_server(browser: Browser, site: Path) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator("[data-md-component=search-query]").press_sequentially("rotatekeys")
        found = page.locator(".md-search-result__link")
        expect(found.first).to_be_visible()
        pages = [str(each.get_attribute("href")) for each in found.all()]
        assert any("commands.html" in each for each in pages), pages
        assert {url.partition(":")[0] for url in asked} == {"file"}
