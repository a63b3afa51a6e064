"""In a browser: a page of another origin uploads and reads by presigned URLs."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.console.browser import launch

pytestmark = pytest.mark.browser

UPLOAD = """async ([put, get]) => {
    const headers = {"content-type": "text/x-own", "x-amz-meta-colour": "blue"};
    const sent = await fetch(put, {method: "PUT", headers, body: "from a page"});
    const got = await fetch(get);
    return [sent.status, sent.headers.get("etag"), await got.text()];
}"""
FAILING = "url => fetch(url).then(answer => answer.status, error => error.name)"


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer with an empty page."""
        body = b"<!doctype html><title>app</title>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def page() -> Iterator[Page]:
    """Return a page of an origin that is not the bucket's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        opened = browser.new_page()
        opened.goto(f"http://127.0.0.1:{server.server_port}/")
        yield opened
        browser.close()
    server.shutdown()
    server.server_close()


def test_a_page_uploads_and_reads_where_the_bucket_s_rules_allow_it(
    s3: Any, bucket: str, page: Page
) -> None:
    options = {"Bucket": bucket, "Key": "k"}
    typed = {"ContentType": "text/x-own", "Metadata": {"colour": "blue"}}
    put = s3.generate_presigned_url("put_object", {**options, **typed})
    get = s3.generate_presigned_url("get_object", options)
    assert page.evaluate(FAILING, put) == "TypeError"
    rule = {
        "AllowedOrigins": [page.evaluate("location.origin")],
        "AllowedMethods": ["GET", "PUT"],
        "AllowedHeaders": ["content-type", "x-amz-meta-*"],
        "ExposeHeaders": ["ETag"],
    }
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule]})
    status, etag, text = page.evaluate(UPLOAD, [put, get])
    head = s3.head_object(**options)
    assert (status, etag, text) == (200, head["ETag"], "from a page")
    assert (head["ContentType"], head["Metadata"]) == ("text/x-own", {"colour": "blue"})
    # A page reads errors as well, and knows an expired link from a network that failed.
    absent = s3.generate_presigned_url("get_object", {**options, "Key": "absent"})
    assert page.evaluate(FAILING, absent) == 404
