"""In a browser: a page of another origin uploads and reads by presigned URLs and forms."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.console.browser import launch
from tests.http_server import HttpServer

pytestmark = pytest.mark.browser

UPLOAD = """async ([put, get]) => {
    const headers = {"content-type": "text/x-own", "x-amz-meta-colour": "blue"};
    const sent = await fetch(put, {method: "PUT", headers, body: "from a page"});
    const got = await fetch(get);
    return [sent.status, sent.headers.get("etag"), await got.text()];
}"""
# As a page of plain HTML has it: no script runs when it is sent.
FORM = """([url, fields]) => {
    const form = document.body.appendChild(document.createElement("form"));
    Object.assign(form, {action: url, method: "post", enctype: "multipart/form-data"});
    form.acceptCharset = "utf-8";
    const add = (type, name, value) => form.append(
        Object.assign(document.createElement("input"), {type, name, ...value}));
    for (const [name, value] of Object.entries(fields)) add("hidden", name, {value});
    add("file", "file");
    add("submit", "submit", {value: "Send"});
}"""
SENT = """async ([url, fields]) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append("file", new Blob(["from a script"]), "b.txt");
    const sent = await fetch(url, {method: "POST", body: form});
    return [sent.status, sent.headers.get("etag")];
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
    server = HttpServer(("127.0.0.1", 0), _Site)
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


def test_a_form_of_another_origin_uploads_a_file_that_the_user_chose(
    s3: Any, bucket: str, page: Page
) -> None:
    origin = page.evaluate("location.origin")
    fields = {"success_action_redirect": f"{origin}/done", "Content-Type": "text/plain"}
    made = s3.generate_presigned_post(
        bucket,
        "in/${filename}",
        Fields=fields,
        Conditions=[["content-length-range", 1, 100], *({name: fields[name]} for name in fields)],
    )
    form = [made["url"], made["fields"]]
    page.evaluate(FORM, form)
    chosen = {"name": 'ä "b".txt', "mimeType": "text/html", "buffer": b"from a user"}
    page.set_input_files("input[type=file]", chosen)  # type: ignore[arg-type]  # a file as a dict
    page.click("input[type=submit]")
    page.wait_for_url(f"{origin}/done?*")
    (row,) = s3.list_objects_v2(Bucket=bucket)["Contents"]
    # A browser writes a quote so: it looks like a name with these three characters.
    assert row["Key"] == "in/ä %22b%22.txt"
    found = s3.get_object(Bucket=bucket, Key=row["Key"])
    assert (found["Body"].read(), found["ContentType"]) == (b"from a user", "text/plain")
    # A script needs a rule to read the answer.
    made = s3.generate_presigned_post(bucket, "in/${filename}")
    rule = {"AllowedOrigins": [origin], "AllowedMethods": ["POST"], "ExposeHeaders": ["ETag"]}
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule]})
    status, etag = page.evaluate(SENT, [made["url"], made["fields"]])
    assert (status, etag) == (204, s3.head_object(Bucket=bucket, Key="in/b.txt")["ETag"])
