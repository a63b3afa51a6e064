"""The pages: the same for every visitor, under a strict policy."""

import re
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.test import Client
from pytest_django.fixtures import Settings

from console import urls
from tests.cast import HANDLER
from tests.console import browser

PAGES = [f"/{page.pattern}" for page in urls.urlpatterns]
STATIC = Path(__file__).resolve().parents[2] / "console/static"


@pytest.fixture
def visitor() -> Client:
    """Return a client; the pages do not use the database."""
    client = Client()
    client.handler = HANDLER
    return client


@pytest.mark.parametrize("path", PAGES)
def test_each_id_of_a_page_is_of_one_element(visitor: Client, path: str) -> None:
    ids = Counter(re.findall(r'\sid="([^"]+)"', visitor.get(path).content.decode()))
    assert [name for name, count in ids.items() if count > 1] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_a_strict_policy_and_nothing_inline(visitor: Client, path: str) -> None:
    response = visitor.get(path)
    assert response.status_code == 200
    policy = response["Content-Security-Policy"]
    for part in (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ):
        assert part in policy
    assert "unsafe" not in policy
    html = response.content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://", html)


@pytest.mark.parametrize("path", PAGES)
def test_every_file_that_a_page_refers_to_exists(visitor: Client, path: str) -> None:
    html = visitor.get(path).content.decode()
    named = set(re.findall(r'(?:src|href)="/static/([^"]+)"', html))
    assert named
    for name in named:
        file, _, part = name.partition("#")
        assert (STATIC / file).is_file()
        assert f'id="{part}"' in (STATIC / file).read_text() or not part, name


def test_only_the_page_of_objects_may_connect_to_the_object_api(visitor: Client) -> None:
    for path in PAGES:
        policy = visitor.get(path)["Content-Security-Policy"]
        found = {
            name: set(sources.split())
            for name, sources in re.findall(r"(connect-src|frame-src) ([^;]+)", policy)
        }
        own, store = {"'self'"}, {settings.CACHE.s3_url}
        wanted = {"connect-src": own | store, "frame-src": store}
        assert found == (wanted if path.endswith("objects") else {"connect-src": own})


def test_credits_are_sold_only_where_somebody_takes_the_money(
    visitor: Client, settings: Settings
) -> None:
    said = "the staff of this installation books credits"
    html = visitor.get("/console/usage").content.decode()
    assert (said in html, "top-up-form" in html) == (True, False)
    settings.TOP_UP_PROVIDER = settings.STRIPE_CHECKOUT
    html = visitor.get("/console/usage").content.decode()
    assert (said in html, "top-up-form" in html) == (False, True)


def test_modules_are_served_as_javascript(visitor: Client) -> None:
    """With nosniff, browsers run no module of another type."""
    response = visitor.get("/static/console/lib/api.js")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/javascript")
    assert response["X-Content-Type-Options"] == "nosniff"
    # Read to its end it closes itself, and not as a request does, which asks for the database.
    assert b"export" in b"".join(response)


IMPORT = re.compile(r'^(?:import|export) (?:\{([^}]*)\} from )?"([^"]+)";', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)


def test_every_import_of_a_module_exists() -> None:
    for path in (STATIC / "console").rglob("*.js"):
        for names, module in IMPORT.findall(path.read_text()):
            assert module.startswith(("../", "./")), f"{path.name} imports {module}"
            source = path.parent / module
            assert source.is_file(), f"{path.name} imports {module}"
            if "vendor" not in module:
                wanted = {name.split(" as ")[0].strip() for name in names.split(",")} - {""}
                assert wanted <= set(EXPORT.findall(source.read_text())), f"{path.name}: {module}"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_loaded_anew_when_a_browser_has_kept_it(visitor: Client, path: str) -> None:
    """What the script does is tried in a browser, in frame/test_browser_back.py."""
    assert b'<script src="/static/console/frame/restored.js">' in visitor.get(path).content


@pytest.mark.parametrize("path", PAGES)
def test_a_visitors_cookies_change_nothing_on_a_page(visitor: Client, path: str) -> None:
    plain = visitor.get(path).content
    assert visitor.get(path, HTTP_COOKIE="__Host-zonal-access=x; sessionid=y").content == plain
    assert "Set-Cookie" not in visitor.get(path)


def test_without_chromium_the_browser_tests_fail_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RuntimeError, match="apt-get install chromium"):
        browser.launch(Mock())


def test_pages_allow_only_get_and_head(visitor: Client) -> None:
    assert visitor.post("/console/sign-in").status_code == 405


def test_the_path_without_a_slash_redirects_home(visitor: Client) -> None:
    response = visitor.get("/console")
    assert (response.status_code, response["Location"]) == (302, "/console/")


def test_an_unknown_page_is_404(visitor: Client) -> None:
    response = visitor.get("/console/elsewhere")
    assert response.status_code == 404
    assert b"There is no such page" in response.content
    assert "default-src 'none'" in response["Content-Security-Policy"]
