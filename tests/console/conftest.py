"""A live server, and browsers that visit it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from edgecache.api import client
from tests.console import browser as driven
from tests.console.browser import Visitor
from tests.console.layout import NARROW, SIZES
from tests.edgecache.cluster import Cluster


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Yield one Chromium for all browser tests; Playwright's loop in this thread blocks the ORM."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # The loop only waits for Chromium: no query runs inside of it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = driven.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def site(live_server: LiveServer, settings: Settings) -> str:
    """Return the URL of a live server under the host name of passkeys."""
    base = str(live_server.url)
    settings.TWOFACTOR = replace(
        settings.TWOFACTOR, webauthn_origins=(base,), webauthn_rp_id="localhost"
    )
    return base


@pytest.fixture
def visit(chromium: Browser, site: str) -> Iterator[Callable[..., Visitor]]:
    """Return a function that makes visitors, each with an own browser."""
    with ExitStack() as stack:

        def make(**options: Any) -> Visitor:
            return stack.enter_context(driven.visiting(chromium, site, **options))

        yield make


@pytest.fixture
def visitor(visit: Callable[..., Visitor], request: pytest.FixtureRequest) -> Visitor:
    """Return one visitor, of the size that a test asks for (layout.ON_BOTH_SIZES)."""
    size = getattr(request, "param", None)
    return visit(**SIZES[size]) if size else visit()


@pytest.fixture
def picture() -> Callable[[Page, str], None]:
    """Return a function that saves screenshots into the folder that ZONAL_SCREENSHOTS names."""
    folder = os.environ.get("ZONAL_SCREENSHOTS")

    def keep(page: Page, name: str) -> None:
        if folder:
            width = (page.viewport_size or {"width": 1280})["width"]
            is_named = width > NARROW["viewport"]["width"] or "narrow" in name
            driven.keep(page, Path(folder), name if is_named else f"{name}-narrow")

    return keep


@pytest.fixture
def over_a_brain(cluster: Cluster, settings: Settings) -> Iterator[None]:
    """Connect the platform to the brain."""
    settings.CACHE = replace(
        settings.CACHE,
        brain_url=f"http://127.0.0.1:{cluster.internal_port}",
        s3_url=cluster.url,
        secret=cluster.secret,
        is_enabled=True,
    )
    client._sessions.clear()
    client.breaker.succeeded()
    yield
    client._sessions.clear()
