"""In a browser: a bucket becomes a website in its settings, and is opened at a host of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from django.contrib.staticfiles import finders
from playwright.sync_api import Page, Response, expect

from tests.console.browser import Visitor
from tests.console.journeys import post, sign_up
from tests.console.layout import SIZES, hold
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("over_a_brain"),
]

TOKEN = "0" * 64
HEAD = '<!doctype html><html lang="en"><link rel="stylesheet" href="/css/site.css"><title>'
FILES = {
    "index.html": f'{HEAD}Home</title><h1>Größe</h1><img alt="" src="img/mark.svg">'
    '<p id="said"></p><a href="blog?from=home">Blog</a> <a href="absent">Absent</a>'
    '<script type="module" src="/js/app.mjs"></script>',
    "blog/index.html": f'{HEAD}Blog</title><h1>Blog</h1><a href="first">First</a>',
    "blog/first/index.html": f"{HEAD}First</title><h1>First</h1>",
    "404.html": f"{HEAD}Not here</title><h1>There is no such page</h1>",
    "css/site.css": '@font-face { font-family: "Inter"; src: url("../fonts/inter.woff2"); }'
    'body { font-family: "Inter"; margin: 40px; color: rgb(20, 40, 60); }',
    "js/app.mjs": 'import { said } from "./said.js"; document.querySelector("#said").append(said);',
    # Long enough to be sent compressed.
    "js/said.js": 100 * "// Words, and words. " + '\nexport const said = "A script is here.";',
    "img/mark.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle'
    ' cx="20" cy="20" r="18" fill="teal"/></svg>',
}


def upload_site(cluster: Cluster, bucket: str) -> tuple[Keys, str]:
    """Upload the files without their types; return the tenant's keys and the bucket's host."""
    with psycopg.connect(cluster.database_url) as database:
        found = database.execute(
            "SELECT organization_id, environment_pk, id, public_name FROM brain_bucket"
            " WHERE name = %s ORDER BY id DESC LIMIT 1",
            [bucket],
        ).fetchone()
    organization_id, environment_pk, bucket_id, public_name = cast("tuple[Any, ...]", found)
    keys = cluster.tenant(like=Keys(organization_id, environment_pk, "", ""))
    s3 = connect(keys, cluster.url)
    font = Path(str(finders.find("unfold/fonts/inter/Inter-Bold.woff2"))).read_bytes()
    for key, body in {**FILES, "fonts/inter.woff2": font}.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    s3.close()
    host = f"{public_name}.example.org"
    fields = {"host": host, "token": TOKEN, "seen": [TOKEN]}
    cluster.call("POST", f"/v1/buckets/{bucket_id}/hosts?{keys.scope}", fields)
    return keys, host


def opened(page: Page, url: str) -> Response:
    """Open a page; return its response."""
    return cast("Response", page.goto(url))


@pytest.mark.parametrize("size", SIZES)
def test_a_bucket_becomes_a_website(
    visit: Callable[..., Visitor],
    cluster: Cluster,
    picture: Callable[[Page, str], None],
    size: str,
) -> None:
    # The brain in the place of a proxy: the browser sends it the host's name.
    visitor = visit(**SIZES[size], proxy={"server": cluster.url, "bypass": "localhost"})
    page, bucket = visitor.page, f"homepage-{size}"
    sign_up(visitor)
    assert post(visitor, "/v1/cache/buckets", {"name": bucket}).ok
    _, host = upload_site(cluster, bucket)

    visitor.go(f"/console/objects?bucket={bucket}&view=settings")
    expect(page.get_by_role("link", name=f"Open the website at {host}")).to_have_count(0)
    website = page.get_by_role("group", name="Website")
    visitor.fill("Error document optional", "/404.html")
    visitor.press("Save")
    expect(page.locator("#website-error-error")).to_have_text(
        "Write a key, without a slash before it."
    )
    expect(page.locator("#website-index-error")).to_have_text("A website needs an index document.")
    visitor.fill("Error document optional", "404.html")
    visitor.fill("Index document optional", "index.html")
    visitor.press("Save")
    visitor.sees_status("The settings are saved.")
    visitor.settle()
    expect(website).to_contain_text("Only a public bucket is a website.")
    page.locator("#switches").get_by_label("Public – anyone").check()
    visitor.press("Save")
    visitor.agrees("Make public")
    expect(website.get_by_role("link")).to_be_visible()
    visitor.settle()
    at_own_host = page.get_by_role("link", name=f"Open the website at {host}")
    expect(at_own_host).to_have_attribute("href", f"https://{host}/")
    hold(visitor, "the settings of a website")
    picture(page, f"objects-website-{size}")
    shared = str(website.get_by_role("link").get_attribute("href"))

    assert opened(page, shared).status == 200
    expect(page.get_by_role("heading")).to_have_text("Größe")
    page.get_by_role("link", name="Blog").click()
    assert page.url == f"{shared}blog/?from=home"

    assert opened(page, f"http://{host}/").status == 200
    visitor.sees("A script is here.")
    page.wait_for_function(
        "fetch('/js/said.js', { cache: 'reload' })"
        ".then((found) => found.headers.get('content-encoding') === 'gzip')"
    )
    assert page.reload()
    visitor.sees("A script is here.")
    assert page.evaluate("document.fonts.load('16px Inter').then((found) => found.length)") == 1
    assert page.evaluate("document.querySelector('img').naturalWidth") == 40
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(20, 40, 60)"
    picture(page, f"website-home-{size}")
    page.get_by_role("link", name="Blog").click()
    assert page.url == f"http://{host}/blog/?from=home"
    page.get_by_role("link", name="First").click()
    assert (page.url, page.title()) == (f"http://{host}/blog/first/", "First")
    assert opened(page, f"http://{host}/blog/absent/").status == 404
    visitor.sees("There is no such page")
    picture(page, f"website-404-{size}")

    visitor.go(f"/console/objects?bucket={bucket}&view=settings")
    website.get_by_label("Single-page application").check()
    visitor.press("Save")
    visitor.sees_status("The settings are saved.")
    answer = opened(page, f"http://{host}/app/42")
    assert (answer.status, page.title()) == (200, "Home")
    assert page.evaluate("fetch('/absent.js').then((found) => found.status)") == 404
