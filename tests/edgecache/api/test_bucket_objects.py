"""Objects of a bucket through the platform: browsed, deleted, read and written by URLs."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from accounts.models import User
from audit.models import AuditEvent
from edgecache.brain.access.platform_keys import PlatformKeys
from tests.cast import Caller, member, signed_in
from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys

pytestmark = pytest.mark.usefixtures("over_a_brain")

PATH = "/v1/cache/buckets/media/objects"
ORIGIN = "http://testserver"


@pytest.fixture
def caller(alice: User) -> Caller:
    """Return Alice, who has a bucket."""
    made = signed_in(alice)
    assert made.post("/v1/cache/buckets", {"name": "media"}).status == 201
    return made


def by_url(method: str, url: str, body: bytes = b"", **headers: str) -> Answer:
    """Send a request to a URL without any credential."""
    parts = urlsplit(url)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return send(
        f"{parts.scheme}://{parts.netloc}", method, f"{parts.path}?{parts.query}", named, body
    )


def upload_urls(caller: Caller, key: str, **body: Any) -> list[str]:
    """Return URLs to write an object."""
    answer = caller.post(f"{PATH}/upload-urls", {"key": key, **body})
    assert answer.status == 200, answer.body
    urls: list[str] = answer.body["urls"]
    return urls


def download_url(caller: Caller, key: str, **body: Any) -> str:
    """Return a URL to read an object."""
    answer = caller.post(f"{PATH}/download-url", {"key": key, **body})
    assert answer.status == 200, answer.body
    return str(answer.body["url"])


def put(caller: Caller, key: str, body: bytes = b"bytes", content_type: str = "text/plain") -> None:
    """Write an object by a URL."""
    (url,) = upload_urls(caller, key, content_type=content_type)
    assert by_url("PUT", url, body, content_type=content_type).status == 200


def test_a_bucket_is_browsed_as_folders_and_pages(caller: Caller) -> None:
    for key in ("a.txt", "b/1", "b/2", "c.txt"):
        put(caller, key)
    first = caller.get(f"{PATH}?delimiter=/&limit=2").body
    assert [row["key"] for row in first["objects"]] == ["a.txt"]
    assert (first["prefixes"], first["next_after"]) == (["b/"], "b/")
    rest = caller.get(f"{PATH}?delimiter=/&limit=2&after=b/").body
    assert ([row["key"] for row in rest["objects"]], rest["next_after"]) == (["c.txt"], None)
    folder = caller.get(f"{PATH}?prefix=b/&delimiter=/").body
    assert [(row["key"], row["size"]) for row in folder["objects"]] == [("b/1", 5), ("b/2", 5)]


def test_an_object_is_described_and_deleted(caller: Caller) -> None:
    put(caller, "ä b/ü?.txt")
    found = caller.get(f"{PATH}/details?key=%C3%A4%20b/%C3%BC%3F.txt").body
    assert (found["size"], found["content_type"]) == (5, "text/plain")
    assert caller.post(f"{PATH}/delete", {"keys": ["ä b/ü?.txt", "absent"]}).status == 204
    assert caller.get(f"{PATH}/details?key=%C3%A4%20b/%C3%BC%3F.txt").code == "object_not_found"
    event = AuditEvent.objects.get(tag="api:object:delete")
    assert event.data == {"bucket": "media", "count": 2, "keys": ["ä b/ü?.txt", "absent"]}


def test_versions_are_listed_read_restored_and_deleted(caller: Caller, charlie: User) -> None:
    assert caller.call("PATCH", "/v1/cache/buckets/media", {"versioning": "Enabled"}).status == 200
    for body in (b"one", b"second"):
        put(caller, "a.txt", body)
    put(caller, "a.txt.bak")
    assert caller.post(f"{PATH}/delete", {"keys": ["a.txt"]}).status == 204
    page = caller.get(f"{PATH}/versions?prefix=a.txt&limit=2").body
    assert [(row["is_delete_marker"], row["size"]) for row in page["versions"]] == [
        (True, None),
        (False, 6),
    ]
    query = f"prefix=a.txt&after={page['next_after']}&after_version={page['next_version']}"
    rest = caller.get(f"{PATH}/versions?{query}").body
    assert [(row["key"], row["is_latest"]) for row in rest["versions"]] == [
        ("a.txt", False),
        ("a.txt.bak", True),
    ]
    assert (rest["next_after"], rest["next_version"]) == (None, "")
    marker, first = page["versions"][0]["version_id"], rest["versions"][0]["version_id"]
    assert by_url("GET", download_url(caller, "a.txt", version_id=first)).body == b"one"
    of_first = {"key": "a.txt", "version_id": first}
    theirs = signed_in(charlie)
    theirs.post("/v1/cache/buckets", {"name": "media", "versioning": "Enabled"})
    assert theirs.post(f"{PATH}/versions/restore", of_first).code == "object_not_found"
    assert theirs.post(f"{PATH}/versions/delete", of_first).status == 204
    assert theirs.get(f"{PATH}/versions").body["versions"] == []
    made = caller.post(f"{PATH}/versions/restore", of_first)
    assert made.status == 200
    assert by_url("GET", download_url(caller, "a.txt")).body == b"one"
    # The restored one, then the marker: the version below them is current.
    for version_id in (made.body["version_id"], marker):
        named = {"key": "a.txt", "version_id": version_id}
        assert caller.post(f"{PATH}/versions/delete", named).status == 204
    assert by_url("GET", download_url(caller, "a.txt")).body == b"second"
    for version_id in ("", "x", first.upper()):
        named = {"key": "a.txt", "version_id": version_id}
        assert caller.post(f"{PATH}/versions/delete", named).status == 400
    event = AuditEvent.objects.get(tag="api:object:restore")
    assert event.data == {"bucket": "media", **of_first}
    assert AuditEvent.objects.filter(tag="api:object_version:delete").count() == 3


def test_a_url_reads_one_object_and_nothing_else(caller: Caller) -> None:
    put(caller, "a.txt", b"first")
    put(caller, "b.txt", b"second")
    url = download_url(caller, "a.txt", expires_in_s=60)
    assert by_url("GET", url).body == b"first"
    for changed in (
        url.replace("/a.txt", "/b.txt"),
        url.replace("/media/a.txt", "/media"),
        url.replace("Expires=60", "Expires=3600"),
        url.replace("disposition=attachment", "disposition=inline"),
        f"{url}&partNumber=1",
        f"{url}&uploadId=x",
    ):
        assert changed != url
        assert by_url("GET", changed).status == 403, changed
    for method in ("HEAD", "PUT", "DELETE", "POST"):
        assert by_url(method, url).status == 403
    event = AuditEvent.objects.get(tag="api:object:share")
    assert event.data["key"] == "a.txt"
    assert "Signature" not in str(event.data)


def test_a_url_is_worthless_with_another_tenants_bucket_or_id(
    caller: Caller, alice: User, charlie: User
) -> None:
    put(caller, "a.txt", b"alice's")
    theirs = signed_in(charlie)
    theirs.post("/v1/cache/buckets", {"name": "media"})
    assert by_url("GET", download_url(theirs, "a.txt")).code == "NoSuchKey"
    url = download_url(theirs, "a.txt")
    forged = url.replace(f"-{charlie.organization_id}-", f"-{alice.organization_id}-")
    assert forged != url
    assert by_url("GET", forged).code == "SignatureDoesNotMatch"


def test_what_a_url_serves_cannot_run_as_a_page(caller: Caller) -> None:
    put(caller, "x.html", b"<script>alert(1)</script>", "text/html")
    saved = by_url("GET", download_url(caller, "x.html"))
    shown = by_url("GET", download_url(caller, "x.html", disposition="inline"))
    assert saved.headers["content-disposition"] == "attachment; filename*=UTF-8''x.html"
    for answer in (saved, shown):
        assert answer.headers["content-security-policy"] == "sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_upload_is_limited_to_its_type_and_cannot_copy(caller: Caller) -> None:
    put(caller, "secret.txt")
    (url,) = upload_urls(caller, "a.txt", content_type="text/plain")
    assert by_url("PUT", url, b"x", content_type="text/html").status == 403
    source: dict[str, Any] = {
        "content_type": "text/plain",
        "x_amz_copy_source": "/media/secret.txt",
    }
    assert by_url("PUT", url, **source).status == 403
    assert by_url("GET", url).status == 403
    assert caller.get(f"{PATH}/details?key=a.txt").code == "object_not_found"


def test_an_upload_that_replaces_nothing_is_refused_where_an_object_is(caller: Caller) -> None:
    (url,) = upload_urls(caller, "a.txt", if_none_match="*")
    assert by_url("PUT", url, b"x").status == 403
    assert by_url("PUT", url, b"first", if_none_match="*").status == 200
    refused = by_url("PUT", url, b"second", if_none_match="*")
    assert (refused.status, refused.code) == (412, "PreconditionFailed")
    # In parts it is refused at the end, which may be repeated without the condition.
    (create,) = upload_urls(caller, "a.txt", step="create")
    upload_id = by_url("POST", create).text("UploadId")
    (part,) = upload_urls(caller, "a.txt", step="part", upload_id=upload_id, part_numbers=[1])
    etag = by_url("PUT", part, b"in parts").headers["etag"]
    listed = f"<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
    body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
    complete = {"step": "complete", "upload_id": upload_id}
    (url,) = upload_urls(caller, "a.txt", **complete, if_none_match="*")
    assert by_url("POST", url, body, if_none_match="*").status == 412
    assert by_url("GET", download_url(caller, "a.txt")).body == b"first"
    (url,) = upload_urls(caller, "a.txt", **complete)
    assert by_url("POST", url, body).status == 200
    assert by_url("GET", download_url(caller, "a.txt")).body == b"in parts"


@pytest.mark.parametrize("key", ["../x", "a/../../x", "a/./b", "x/..", "/x", "a//b", "a\\..\\b"])
def test_a_key_with_dots_is_a_key_and_no_path(caller: Caller, key: str) -> None:
    put(caller, key)
    url = download_url(caller, key)
    assert not {".", ".."} & set(urlsplit(url).path.split("/"))
    assert by_url("GET", url).body == b"bytes"
    assert caller.get(PATH).body["objects"][0]["key"] == key


def test_a_key_that_no_url_can_name_is_refused(caller: Caller) -> None:
    for key in [".", "..", "", "a\0b", "ä" * 513]:
        for path in ("download-url", "upload-urls"):
            answer = caller.post(f"{PATH}/{path}", {"key": key})
            assert (answer.status, answer.code) == (400, "invalid_request")


def test_an_object_is_uploaded_in_parts(caller: Caller) -> None:
    (create,) = upload_urls(caller, "big", step="create", content_type="video/mp4")
    upload_id = by_url("POST", create, content_type="video/mp4").text("UploadId")
    parts = [b"a" * (5 * 2**20), b"b"]
    urls = upload_urls(caller, "big", step="part", upload_id=upload_id, part_numbers=[1, 2])
    sent = [by_url("PUT", url, body) for url, body in zip(urls, parts, strict=True)]
    listed = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{answer.headers['etag']}</ETag></Part>"
        for number, answer in enumerate(sent, 1)
    )
    (complete,) = upload_urls(caller, "big", step="complete", upload_id=upload_id)
    body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
    assert by_url("POST", complete, body).status == 200
    found = caller.get(f"{PATH}/details?key=big").body
    assert (found["size"], found["content_type"]) == (5 * 2**20 + 1, "video/mp4")
    tags = AuditEvent.objects.filter(tag="api:object:upload").values_list("data__step", flat=True)
    assert sorted(tags) == ["complete", "create"]


def test_an_upload_in_parts_is_aborted(caller: Caller) -> None:
    (create,) = upload_urls(caller, "big", step="create")
    upload_id = by_url("POST", create).text("UploadId")
    (abort,) = upload_urls(caller, "big", step="abort", upload_id=upload_id)
    assert by_url("DELETE", abort).status == 204
    (part,) = upload_urls(caller, "big", step="part", upload_id=upload_id, part_numbers=[1])
    assert by_url("PUT", part, b"x").code == "NoSuchUpload"


def test_a_step_names_what_it_needs(caller: Caller) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"step": "part", "upload_id": "x"}, "part_numbers"),
        ({"step": "complete"}, "upload_id"),
        ({"step": "put", "upload_id": "x"}, "upload_id"),
        ({"step": "part", "upload_id": "x", "part_numbers": [10_001]}, "part_numbers.0"),
        ({"step": "delete"}, "step"),
        ({"expires_in_s": 3601}, "expires_in_s"),
        ({"content_type": "text/plain\r\nx-evil: 1"}, "content_type"),
        ({"if_none_match": '"an etag"'}, "if_none_match"),
        ({"step": "create", "if_none_match": "*"}, "if_none_match"),
    ]
    for body, field in cases:
        answer = caller.post(f"{PATH}/upload-urls", {"key": "a", **body})
        assert (answer.status, answer.body["errors"][0]["field"]) == (400, field)


def test_only_scripts_of_the_platforms_own_origin_may_use_a_url(caller: Caller) -> None:
    (url,) = upload_urls(caller, "a.txt", content_type="text/plain")
    asked: dict[str, Any] = {
        "access_control_request_method": "PUT",
        "access_control_request_headers": "content-type,if-none-match",
    }
    allowed = by_url("OPTIONS", url, origin=ORIGIN, **asked)
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-credentials" not in allowed.headers
    assert by_url("OPTIONS", url, origin="https://evil.example", **asked).status == 403
    # The rule is for the URLs of the platform alone, and for the origin that they name.
    other = url.replace("testserver", "evil.example")
    written = by_url("PUT", other, b"x", content_type="text/plain", origin="http://evil.example")
    assert written.status == 403
    stranger = by_url("PUT", url, b"x", content_type="text/plain", origin="https://evil.example")
    assert "access-control-allow-origin" not in stranger.headers


def test_the_platforms_key_signs_urls_only_and_for_an_hour_at_most(
    caller: Caller, cluster: Cluster, alice: User
) -> None:
    put(caller, "a.txt")
    (url,) = upload_urls(caller, "a.txt")
    credential = urlsplit(url).query.partition("X-Amz-Credential=")[2].partition("%2F")[0]
    key = PlatformKeys([cluster.secret]).find(credential)
    assert key is not None
    signer = Signer(Keys(0, 0, key.id, key.secret), cluster.url)
    assert by_url("GET", cluster.url + signer.presign("GET", "/media/a.txt")).status == 200
    long = signer.presign("GET", "/media/a.txt", expires=3601)
    assert by_url("GET", cluster.url + long).code == "AccessDenied"
    assert signer.send("GET", "/media/a.txt").code == "AccessDenied"


def upload_form(caller: Caller, **body: Any) -> dict[str, Any]:
    """Return a form to upload a file."""
    answer = caller.post(f"{PATH}/upload-form", body)
    assert answer.status == 200, answer.body
    return dict(answer.body)


def by_form(form: dict[str, Any], **changes: str) -> Answer:
    """Post a form with a file, some of its fields changed."""
    parts = [(f'"{name}"', value) for name, value in {**form["fields"], **changes}.items()]
    parts.append(('"file"; filename="a.txt"', "bytes"))
    body = "".join(
        f"--x\r\nContent-Disposition: form-data; name={named}\r\n\r\n{value}\r\n"
        for named, value in parts
    )
    kind = "multipart/form-data; boundary=x"
    return by_url("POST", form["url"], f"{body}--x--".encode(), content_type=kind)


def test_a_form_uploads_files_below_a_prefix_and_nothing_else(
    caller: Caller, alice: User, charlie: User
) -> None:
    form = upload_form(
        caller,
        prefix="in/",
        max_bytes=5,
        content_type="text/plain",
        redirect_url="https://app.example.com/thanks",
        expires_in_s=60,
    )
    sent = by_form(form)
    assert (sent.status, sent.headers["location"].partition("?")[0]) == (
        303,
        "https://app.example.com/thanks",
    )
    found = caller.get(f"{PATH}/details?key=in/a.txt").body
    assert (found["size"], found["content_type"]) == (5, "text/plain")
    event = AuditEvent.objects.get(tag="api:object:upload")
    assert (event.data["key"], event.data["step"]) == ("in/", "form")
    assert form["fields"]["policy"] not in str(event.data)
    for name, value in (
        ("key", "other/a.txt"),
        ("content-type", "text/html"),
        ("success_action_redirect", "https://evil.example"),
        ("x-amz-meta-a", "b"),
        ("policy", "e30="),
    ):
        assert by_form(form, **{name: value}).status == 403
    # The same names in another tenant, whose id is in the credential.
    theirs = signed_in(charlie)
    theirs.post("/v1/cache/buckets", {"name": "media"})
    credential = form["fields"]["x-amz-credential"]
    forged = credential.replace(f"-{alice.organization_id}-", f"-{charlie.organization_id}-")
    assert forged != credential
    assert by_form(form, **{"x-amz-credential": forged}).code == "SignatureDoesNotMatch"
    small = upload_form(caller, key="in/b.txt", max_bytes=4)
    assert by_form(small).code == "EntityTooLarge"
    exact = upload_form(caller, key="in/b.txt")
    assert by_form(exact, key="in/${filename}").status == 403
    assert by_form(exact).status == 204
    keys = [row["key"] for row in caller.get(PATH).body["objects"]]
    assert keys == ["in/a.txt", "in/b.txt"]


def test_a_form_names_a_key_or_a_prefix(caller: Caller) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "key"),
        ({"key": "a", "prefix": "b/"}, "key"),
        ({"prefix": ""}, "prefix"),
        ({"prefix": "a/${filename}"}, "prefix"),
        ({"key": "a\0b"}, "key"),
        ({"key": "a", "max_bytes": 5 * 2**30 + 1}, "max_bytes"),
        ({"key": "a", "expires_in_s": 3601}, "expires_in_s"),
        ({"key": "a", "content_type": "text/plain\r\nx: 1"}, "content_type"),
        ({"key": "a", "redirect_url": "javascript:alert(1)"}, "redirect_url"),
        ({"key": "a", "redirect_url": "https://a/\r\nx: 1"}, "redirect_url"),
    ]
    for body, field in cases:
        answer = caller.post(f"{PATH}/upload-form", body)
        assert (answer.status, answer.body["errors"][0]["field"]) == (400, field), body


def test_readers_browse_and_read(caller: Caller, alice: User) -> None:
    put(caller, "a.txt")
    User.objects.filter(pk=alice.pk).update(roles=["reader"])
    assert [row["name"] for row in caller.get("/v1/cache/buckets").body["results"]] == ["media"]
    assert by_url("GET", download_url(caller, "a.txt")).body == b"bytes"
    for path in ("upload-urls", "upload-form"):
        assert caller.post(f"{PATH}/{path}", {"key": "a.txt"}).code == "permission_denied"
    assert caller.post(f"{PATH}/delete", {"keys": ["a.txt"]}).code == "permission_denied"


def test_an_http_origin_can_be_neither_listed_nor_written(caller: Caller) -> None:
    origin = {"name": "site", "kind": "http", "config": {"url": "https://origin.example.com/"}}
    caller.post("/v1/cache/origins", origin)
    caller.post("/v1/cache/buckets", {"name": "pulled", "origin": "site"})
    answer = caller.post("/v1/cache/buckets/pulled/objects/delete", {"keys": ["a"]})
    assert (answer.status, answer.code) == (409, "origin_read_only")
    assert caller.get("/v1/cache/buckets/pulled/objects").code == "origin_read_only"


def test_a_failing_origin_is_reported_as_such(caller: Caller) -> None:
    config = {"bucket": "gone", "region": "eu-central-1", "endpoint": "http://127.0.0.1:9"}
    assert caller.post("/v1/cache/origins", {"name": "s3", "kind": "s3", "config": config}).body
    caller.post("/v1/cache/buckets", {"name": "away", "origin": "s3"})
    answer = caller.get("/v1/cache/buckets/away/objects")
    assert (answer.status, answer.code) == (502, "origin_failed")
    assert "127.0.0.1" not in answer.body["detail"]


LINKS = "/v1/cache/buckets/media/signed-links"


def test_a_signed_link_is_made_recorded_and_revoked(caller: Caller, alice: User) -> None:
    put(caller, "a/b.txt", b"first")
    made = caller.post(LINKS, {"key": "a/b.txt", "expires_in_s": 86_400})
    assert made.status == 200, made.body
    assert by_url("GET", made.body["url"]).body == b"first"
    below = caller.post(LINKS, {"prefix": "a/"}).body
    assert by_url("GET", made.body["url"].partition("?")[0] + f"?{below['query']}").status == 200
    event, other = AuditEvent.objects.filter(tag="api:signed_link:create").order_by("pk")
    assert event.data == {"bucket": "media", "opens": "a/b.txt", "expires_in_s": 86_400}
    assert other.data["opens"] == "a/*"

    reader = signed_in(member(alice.organization, "r@example.com", role="reader"))
    theirs = reader.post(LINKS, {"key": "a/b.txt"}).body["url"]
    assert reader.call("DELETE", LINKS).status == 403
    assert caller.call("DELETE", LINKS).status == 204
    for url in (made.body["url"], theirs):
        assert by_url("GET", url).status == 403
    assert AuditEvent.objects.filter(tag="api:signed_link:delete").exists()


def test_a_signed_link_names_one_thing_of_one_s_own(caller: Caller, charlie: User) -> None:
    theirs = signed_in(charlie)
    for answer in (theirs.post(LINKS, {"key": "a"}), theirs.call("DELETE", LINKS)):
        assert (answer.status, answer.code) == (404, "bucket_not_found")
    answer = caller.post(LINKS, {"key": "a", "host": "files.example.com"})
    assert (answer.status, answer.code) == (404, "host_not_found")
    for body in (
        {},
        {"key": ""},
        {"key": "a", "prefix": "a/"},
        {"key": "..", "expires_in_s": 60},
        {"key": "a", "query": "v=1"},
        {"key": "a", "expires_in_s": 31_536_001},
        {"key": "a", "disposition": "inline"},
    ):
        answer = caller.post(LINKS, body)
        assert (answer.status, answer.code) == (400, "invalid_request"), body
