"""Websites from buckets: what a stranger can make of them first, then what a browser gets."""

import json
import urllib.error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.edgecache.brain.cdn.conftest import Origin, OriginAnswer
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.s3.raw import Answer, send
from tests.edgecache.cluster import Cluster, Keys

TOKEN = "0" * 64
INDEX = {"website_index": "index.html"}
PAGES = {
    "index.html": b"<title>home</title>",
    "404.html": b"<title>not here</title>",
    "blog/index.html": b"<title>blog</title>",
    "blog/first/index.html": b"<title>first</title>",
    "css/a.css": b"body {}",
}
NAVIGATION = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SCRIPT = {"accept": "*/*"}


@dataclass
class Site:
    """A public bucket that is a website, at a host of its own."""

    cluster: Cluster
    scope: str
    row: dict[str, Any]

    @property
    def host(self) -> str:
        """Return its host."""
        return f"{self.row['public_name']}.example.org"

    def ask(self, target: str, method: str = "GET", **headers: str) -> Answer:
        """Send a request to the site's host; header names with _ for -."""
        return self.send(target, {k.replace("_", "-"): v for k, v in headers.items()}, method)

    def send(self, target: str, headers: Mapping[str, str] = {}, method: str = "GET") -> Answer:
        """Send a request to the site's host."""
        return send(self.cluster.url, method, target, {"host": self.host, **headers})

    def change(self, **options: Any) -> None:
        """Change the bucket."""
        self.cluster.call("PATCH", f"/v1/buckets/{self.row['id']}?{self.scope}", options)

    def refused(self, **options: Any) -> list[str]:
        """Return the fields of a change that is refused."""
        with pytest.raises(urllib.error.HTTPError) as refusal:
            self.change(**options)
        with refusal.value as error:
            return sorted(each["field"] for each in json.loads(error.read())["errors"])

    def purge(self, *keys: str) -> int:
        """Purge keys; return how many objects that hit."""
        tenant = {k: int(v) for k, v in (pair.split("=") for pair in self.scope.split("&"))}
        names = [key if "://" in key else f"{self.row['name']}/{key}" for key in keys]
        done = self.cluster.call("POST", "/v1/purge", {**tenant, "keys": names})
        return int(done["objects_purged"])


def site_of(cluster: Cluster, scope: str, name: str = "docs") -> Site:
    """Return a site of a bucket that exists."""
    row = cluster.call("GET", f"/v1/buckets/{name}?{scope}")
    made = Site(cluster, scope, row)
    made.change(is_public=True, **INDEX)
    fields = {"host": made.host, "token": TOKEN, "seen": [TOKEN]}
    cluster.call("POST", f"/v1/buckets/{row['id']}/hosts?{scope}", fields)
    return made


@pytest.fixture
def site(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> Site:
    """Return a small site."""
    for key, body in PAGES.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    return site_of(cluster, keys.scope)


@pytest.fixture
def away(cluster: Cluster, keys: Keys, origin: Origin) -> Site:
    """Return a site whose objects are in another S3 store."""
    config = {"bucket": "store", "region": "eu-test-1", "endpoint": origin.url.rstrip("/")}
    described = {"name": "store", "kind": "s3", "config": {**config, "addressing": "path"}}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", described)
    bucket = {"name": "docs", "origin_id": made["id"]}
    cluster.call("POST", f"/v1/buckets?{keys.scope}", bucket)
    modified = {"Last-Modified": "Sun, 29 Nov 2026 10:00:00 GMT"}
    for key, body in PAGES.items():
        headers = {"ETag": f'"{key}"', **modified}
        origin.said[f"/store/{key}"] = OriginAnswer(200, headers, body, has_ranges=True)
    return site_of(cluster, keys.scope)


# --- strangers and refusals -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "key", "location"),
    [
        ("//evil.example", "/evil.example", "/.//evil.example/"),
        ("///evil.example", "//evil.example", "/.///evil.example/"),
        ("/%2Fevil.example", "/evil.example", "/.//evil.example/"),
        ("/%2f%2fevil.example?x=//y", "//evil.example", "/.///evil.example/?x=//y"),
        ("/\\evil.example", "\\evil.example", "/%5Cevil.example/"),
        ("/%5C%5Cevil.example", "\\\\evil.example", "/%5C%5Cevil.example/"),
        ("/%09/evil.example", "\t/evil.example", "/%09/evil.example/"),
        ("/%0d%0aset-cookie:a=b", "\r\nset-cookie:a=b", "/%0D%0Aset-cookie:a=b/"),
        ("/http://evil.example", "http://evil.example", "/http://evil.example/"),
        ("/a%3fb%23c", "a?b#c", "/a%3Fb%23c/"),
    ],
)
def test_a_redirect_leads_to_no_other_host(
    site: Site, s3: Any, target: str, key: str, location: str
) -> None:
    s3.put_object(Bucket="docs", Key=f"{key}/index.html", Body=b"folder")
    answer = site.ask(target)
    assert (answer.status, answer.headers["location"], answer.body) == (302, location, b"")
    assert "set-cookie" not in answer.headers
    # The host follows.
    found = site.ask(location.removeprefix("/."))
    assert (found.status, found.body) == (200, b"folder")


@pytest.mark.parametrize("target", ["/a/..", "/%2e%2e//evil.example", "/.", "/x/%2E"])
def test_a_folder_that_no_browser_finds_is_not_redirected_to(
    site: Site, s3: Any, target: str
) -> None:
    key = target[1:].replace("%2e", ".").replace("%2E", ".")
    s3.put_object(Bucket="docs", Key=f"{key}/index.html", Body=b"folder")
    assert site.ask(target).status == 404


def test_a_private_bucket_is_no_website(site: Site) -> None:
    site.change(is_public=False, website_error="404.html", website_fallback=True)
    for target in ("/", "/blog", "/blog/", "/absent", "/404.html"):
        answer = site.send(target, NAVIGATION)
        assert (answer.status, answer.body) == (404, b"404 Not Found\n")
        assert "no-such-bucket" in answer.headers["cache-status"]


def test_a_signed_link_opens_no_document_of_a_website(site: Site) -> None:
    site.change(is_public=False, website_error="404.html", website_fallback=True)
    tenant = {k: int(v) for k, v in (pair.split("=") for pair in site.scope.split("&"))}
    opens = {"bucket": "docs", "expires_s": 60, "endpoint": site.cluster.url}
    for key, status in (("blog", 404), ("absent", 404), ("css/a.css", 200)):
        for field in ("key", "prefix"):
            body = {**tenant, **opens, field: key}
            url = site.cluster.call("POST", "/v1/objects/signed-links", body)["url"]
            answer = site.send("/" + url.split("/", 5)[5], NAVIGATION)
            assert answer.status == status, answer
            assert b"<title>" not in answer.body


def test_another_tenant_s_bucket_and_a_reader_s_key_change_nothing(
    site: Site, cluster: Cluster
) -> None:
    charlie = cluster.tenant().scope
    with pytest.raises(urllib.error.HTTPError, match="404"):
        Site(cluster, charlie, site.row).change(website_index="other.html")
    assert site.ask("/").body == PAGES["index.html"]


def test_only_get_and_head_are_answered(site: Site) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert site.ask("/", method).status == 405


def test_options_that_cannot_be_served_are_refused(site: Site) -> None:
    for fields, options in (
        (["website_index"], {"website_index": "a/index.html"}),
        (["website_index"], {"website_index": "a\0"}),
        (["website_error"], {"website_error": "/404.html"}),
        (["website_error"], {"website_error": "é" * 600}),
        (["website_index"], {"website_index": "", "website_error": "404.html"}),
        (["website_index"], {"website_index": "", "website_fallback": True}),
    ):
        assert site.refused(**options) == fields
    site.change(website_error="404.html")
    assert site.refused(website_index="") == ["website_index"]
    site.change(website_index="", website_error="")
    assert site.ask("/").status == 400


def test_an_http_origin_has_documents_of_its_own(
    cluster: Cluster, keys: Keys, origin: Origin
) -> None:
    described = {"name": "site", "kind": "http", "config": {"url": origin.url}}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", described)
    bucket = {"name": "docs", "origin_id": made["id"]}
    with pytest.raises(urllib.error.HTTPError, match="400"):
        cluster.call("POST", f"/v1/buckets?{keys.scope}", {**bucket, **INDEX})
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", bucket)
    assert Site(cluster, keys.scope, row).refused(**INDEX) == ["website_index"]


def test_a_key_that_is_none_is_refused_as_before(site: Site) -> None:
    site.change(website_error="404.html", website_fallback=True)
    for target, status in (("/%ff", 400), ("/%00", 400), ("/%zz", 400), ("/" + 1025 * "a", 414)):
        assert site.send(target, NAVIGATION).status == status
    # A name made from these is too long for a key: nothing is there.
    for target in ("/" + 1024 * "a", "/" + 1020 * "a" + "/"):
        assert site.ask(target).status == 404


# --- pages ------------------------------------------------------------------------------------


def test_folders_have_index_documents(site: Site, s3: Any) -> None:
    # As consoles make for a folder.
    s3.put_object(Bucket="docs", Key="blog/", Body=b"")
    for target, key in (
        ("/", "index.html"),
        ("/?utm=1", "index.html"),
        ("/blog/", "blog/index.html"),
        ("/blog/first/", "blog/first/index.html"),
        ("/blog/index.html", "blog/index.html"),
    ):
        answer = site.ask(target)
        assert (answer.status, answer.body) == (200, PAGES[key])
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        shared = send(site.cluster.url, "GET", f"/p/{site.row['public_name']}{target}")
        assert (shared.status, shared.body) == (200, PAGES[key])
    # What S3 says does not change.
    assert s3.head_object(Bucket="docs", Key="index.html")["ContentType"] == "binary/octet-stream"
    signed = s3.generate_presigned_url("get_object", Params={"Bucket": "docs", "Key": "blog/"})
    assert send(site.cluster.url, "GET", signed.removeprefix(site.cluster.url)).body == b""


def test_a_missing_slash_is_added(site: Site, s3: Any) -> None:
    for method in ("GET", "HEAD"):
        answer = site.ask("/blog?a=1&b=/x", method)
        assert (answer.status, answer.headers["location"]) == (302, "/blog/?a=1&b=/x")
    prefix = f"/p/{site.row['public_name']}"
    answer = send(site.cluster.url, "GET", f"{prefix}/blog/first?q")
    assert (answer.status, answer.headers["location"]) == (302, f"{prefix}/blog/first/?q")
    assert send(site.cluster.url, "GET", prefix).headers["location"] == f"{prefix}/"
    # An object goes before a folder of its name.
    s3.put_object(Bucket="docs", Key="blog", Body=b"object")
    assert site.ask("/blog").body == b"object"


def test_conditions_parts_and_heads_of_an_index_document(site: Site) -> None:
    whole = site.ask("/blog/")
    etag, modified = whole.headers["etag"], whole.headers["last-modified"]
    assert site.ask("/blog/", if_none_match=etag).status == 304
    assert site.ask("/blog/", if_modified_since=modified).status == 304
    assert site.ask("/blog/", if_match='"other"').status == 412
    part = site.ask("/blog/", range="bytes=1-5")
    assert (part.status, part.body) == (206, b"title")
    assert part.headers["content-range"] == f"bytes 1-5/{len(PAGES['blog/index.html'])}"
    assert site.ask("/blog/", range="bytes=99-").status == 416
    head = site.ask("/blog/", "HEAD", range="bytes=1-5")
    assert (head.status, head.body) == (200, b"")
    for name in ("content-length", "content-type", "etag"):
        assert head.headers[name] == whole.headers[name]


def test_a_missing_page_is_the_error_document(site: Site) -> None:
    plain = site.ask("/absent")
    assert (plain.status, plain.body) == (404, b"404 Not Found\n")
    site.change(website_error="404.html")
    for target in ("/absent", "/absent/", "/blog/absent.js"):
        for extra in ({}, {"range": "bytes=0-3"}, {"if-none-match": "*"}, NAVIGATION):
            answer = site.send(target, extra)
            assert (answer.status, answer.body) == (404, PAGES["404.html"])
            # A browser must not keep it: the page may be there a moment later.
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert not answer.headers.keys() & {"etag", "last-modified", "content-range"}
    head = site.ask("/absent", "HEAD")
    assert (head.status, head.body) == (404, b"")
    assert head.headers["content-length"] == str(len(PAGES["404.html"]))
    # Asked for by its own name it is a page like others.
    assert site.ask("/404.html").status == 200


def test_a_single_page_answers_those_who_open_it(site: Site) -> None:
    site.change(website_fallback=True)
    for headers in (
        NAVIGATION,
        {"accept": "text/html;q=0.1"},
        {"sec-fetch-mode": "navigate", "accept": "*/*"},
    ):
        answer = site.send("/app/42?x=1", headers)
        assert (answer.status, answer.body) == (200, PAGES["index.html"])
        assert answer.headers["vary"] == "Accept, Sec-Fetch-Mode"
    etag = answer.headers["etag"]
    assert site.send("/app/42", {**NAVIGATION, "if-none-match": etag}).status == 304
    part = site.send("/app/42", {**NAVIGATION, "range": "bytes=1-5"})
    assert (part.status, part.body) == (206, b"title")
    assert site.ask("/app/42", "HEAD", **NAVIGATION).status == 200
    # A script, a picture, or a call of a script's that is missing is no page.
    for headers in (
        {},
        SCRIPT,
        {"accept": "text/html;q=0, */*"},
        {"sec-fetch-mode": "cors", "accept": "text/html"},
        {"sec-fetch-mode": "no-cors", "accept": "image/avif,*/*"},
    ):
        assert site.send("/app/42.js", headers).body == b"404 Not Found\n"
    site.change(website_error="404.html")
    assert site.send("/app/42.js", SCRIPT).body == PAGES["404.html"]
    assert site.send("/app/42", NAVIGATION).status == 200
    # What is there is served as it is, to everyone, and folders are still found.
    assert site.send("/css/a.css", NAVIGATION).body == PAGES["css/a.css"]
    assert "vary" not in site.send("/css/a.css", NAVIGATION).headers
    assert site.send("/blog", NAVIGATION).status == 302


@pytest.mark.parametrize(
    ("key", "sent", "served"),
    [
        ("a.HTML", "", "text/html; charset=utf-8"),
        ("a.min.js", "", "text/javascript; charset=utf-8"),
        ("m.mjs", "binary/octet-stream", "text/javascript; charset=utf-8"),
        ("f.woff2", "", "font/woff2"),
        ("i.svg", "", "image/svg+xml"),
        ("i.avif", "", "image/avif"),
        ("w.wasm", "", "application/wasm"),
        ("site.webmanifest", "", "application/manifest+json"),
        ("app.js.map", "", "application/json"),
        ("feed.xml", "", "application/xml"),
        ("a.tar.gz", "", "application/gzip"),
        ("js", "", "binary/octet-stream"),
        ("a.b/c", "", "binary/octet-stream"),
        ("a.unheard-of", "", "binary/octet-stream"),
        # What was said is kept, also where it asks browsers to save it.
        ("b.html", "application/octet-stream", "application/octet-stream"),
        ("c.html", "text/plain", "text/plain"),
    ],
)
def test_a_type_that_the_upload_had_not_is_told_by_the_extension(
    site: Site, s3: Any, key: str, sent: str, served: str
) -> None:
    s3.put_object(Bucket="docs", Key=key, Body=b"x", **({"ContentType": sent} if sent else {}))
    assert site.ask(f"/{key}").headers["content-type"] == served
    assert site.ask(f"/{key}", "HEAD").headers["content-type"] == served
    # Without a website all is as it was uploaded.
    site.change(website_index="")
    stored = sent or "binary/octet-stream"
    assert site.ask(f"/{key}").headers["content-type"] == stored


# --- changes and purges -----------------------------------------------------------------------


def test_a_new_page_is_there_immediately(site: Site, s3: Any) -> None:
    site.change(website_error="404.html", website_fallback=True)
    assert site.ask("/new").status == 404
    assert site.send("/new", NAVIGATION).body == PAGES["index.html"]
    s3.put_object(Bucket="docs", Key="new/index.html", Body=b"new")
    assert site.ask("/new").headers["location"] == "/new/"
    s3.put_object(Bucket="docs", Key="new", Body=b"newer")
    assert site.send("/new", NAVIGATION).body == b"newer"
    s3.put_object(Bucket="docs", Key="404.html", Body=b"other")
    assert site.ask("/absent").body == b"other"
    s3.delete_object(Bucket="docs", Key="404.html")
    assert site.ask("/absent").body == b"404 Not Found\n"
    s3.delete_object(Bucket="docs", Key="index.html")
    assert site.send("/absent", NAVIGATION).status == 404
    assert site.ask("/").status == 404


def test_a_page_of_another_store_is_cached_purged_and_counted(away: Site, origin: Origin) -> None:
    away.change(website_error="404.html")
    first = away.ask("/blog/")
    assert (first.status, first.body) == (200, PAGES["blog/index.html"])
    assert "fwd=uri-miss" in first.headers["cache-status"]
    until(lambda: "hit" in away.ask("/blog/").headers["cache-status"])
    assert away.ask("/blog").headers["location"] == "/blog/"

    before = away.cluster.call("GET", "/v1/metrics")
    missing = [away.ask("/absent") for _ in range(3)]
    assert {(answer.status, answer.body) for answer in missing} == {(404, PAGES["404.html"])}
    # The origin was asked for the key; after that it is known to be missing.
    hits = ["hit" in answer.headers["cache-status"] for answer in missing]
    assert hits[0] is False
    after = away.cluster.call("GET", "/v1/metrics")
    assert after["total_hits"] - before["total_hits"] == sum(hits)
    assert after["total_misses"] - before["total_misses"] == 3 - sum(hits)

    origin.said["/store/404.html"].body = b"changed"
    origin.said["/store/404.html"].headers["ETag"] = '"2"'
    assert away.ask("/absent").body == PAGES["404.html"]
    assert away.purge("404.html") == 1
    assert away.ask("/absent").body == b"changed"
    # Its parts are of the whole document, also where the cache has none of it.
    away.purge("404.html", "index.html")
    assert away.ask("/absent", range="bytes=0-1").body == b"changed"
    assert away.ask("/", range="bytes=1-5").body == b"title"
    # A page that comes to the store is seen when the key is purged.
    origin.said["/store/absent"] = OriginAnswer(200, {"ETag": '"3"'}, b"came")
    away.purge("absent")
    assert away.ask("/absent").body == b"came"


def test_a_page_of_another_store_is_sent_as_one_of_the_bucket_s_own(
    away: Site, origin: Origin
) -> None:
    fields = {"ETag": '"1"', "Cache-Control": "max-age=60", "Content-Type": "binary/octet-stream"}
    for key in ("index.html", "404.html"):
        origin.said[f"/store/{key}"] = OriginAnswer(200, fields, 2000 * b"x", has_ranges=True)
    away.change(website_error="404.html", website_fallback=True)

    def is_right_and_kept() -> bool:
        missing = away.ask("/absent", **SCRIPT)
        assert (missing.status, missing.headers["cache-control"]) == (404, "no-store")
        assert missing.headers["content-type"] == "text/html; charset=utf-8"
        assert {"etag", "last-modified"}.isdisjoint(missing.headers)
        opened = away.ask("/absent", **NAVIGATION)
        assert (opened.status, opened.headers["cache-control"]) == (200, "max-age=60")
        assert "Sec-Fetch-Mode" in opened.headers["vary"]
        return "hit" in away.ask("/").headers["cache-status"]

    # As they come, and from the cache.
    until(is_right_and_kept)
    assert is_right_and_kept()


def test_another_store_is_not_asked_for_each_request(away: Site, origin: Origin) -> None:
    def is_asked(target: str) -> bool:
        before = len(origin.asked)
        away.ask(target, range="bytes=0-1")
        return len(origin.asked) > before

    # What is missing is known to be so for a moment.
    until(lambda: [is_asked("/absent") for _ in range(3)][-1] is False)
    assert away.ask("/blog").status == 302
    until(lambda: not is_asked("/blog/"))
    until(lambda: [is_asked("/blog") for _ in range(3)][-1] is False)


def test_a_url_of_a_folder_is_purged_as_its_page(site: Site) -> None:
    public = f"{site.cluster.url}/p/{site.row['public_name']}"
    for url in (f"https://{site.host}/", f"https://{site.host}/blog/?a=b", f"{public}/blog/first/"):
        assert site.purge(url) == 1
    assert site.purge(f"https://{site.host}/css/a.css?v=1") == 1
