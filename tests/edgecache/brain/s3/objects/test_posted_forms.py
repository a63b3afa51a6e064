"""Uploads by a form: what a signed policy allows, and nothing else."""

import base64
import hashlib
import hmac
import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from tests.edgecache.brain.s3.raw import Answer, Signer, md5, send
from tests.edgecache.cluster import Cluster, Keys

BOUNDARY = "----x"
Fields = Sequence[tuple[str, str]]
HOUR = timedelta(hours=1)


@dataclass
class Form:
    """A form of the key ``in/a.txt``, signed apart from the server's code."""

    keys: Keys
    url: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    conditions: list[Any] = field(default_factory=list)
    file: bytes = b"bytes"
    filename: str = "a.txt"
    key: str = "in/${filename}"
    bucket: str = "docs"
    expires_in: timedelta = HOUR
    signed: timedelta = timedelta()
    policy: Any = None

    def signature(self) -> list[tuple[str, str]]:
        """Return the fields that sign the policy."""
        now = datetime.now(UTC)
        stamp = (now + self.signed).strftime("%Y%m%dT%H%M%SZ")
        credential = f"{self.keys.access_key}/{stamp[:8]}/us-east-1/s3/aws4_request"
        own = [
            ("x-amz-algorithm", "AWS4-HMAC-SHA256"),
            ("x-amz-credential", credential),
            ("x-amz-date", stamp),
        ]
        policy = self.policy or {
            "expiration": (now + self.expires_in).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "conditions": [
                {"bucket": "docs"},
                ["starts-with", "$key", "in/"],
                *({name: value} for name, value in own),
                *self.conditions,
            ],
        }
        text = base64.b64encode(json.dumps(policy).encode()).decode()
        key = Signer(self.keys, self.url).key(stamp[:8])
        made = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return [*own, ("policy", text), ("x-amz-signature", made)]

    def body(self) -> bytes:
        """Return the form as browsers send it."""
        parts = [
            part(name, value.encode())
            for name, value in [("key", self.key), *self.fields, *self.signature()]
        ]
        parts.append(part("file", self.file, self.filename))
        return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()

    def post(self, headers: Mapping[str, str] | None = None, query: str = "") -> Answer:
        return post(self.url, self.body(), f"/{self.bucket}{query}", headers)


def part(name: str, value: bytes, filename: str = "") -> bytes:
    named = f'; filename="{filename}"' if filename else ""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + value + b"\r\n"


def post(
    url: str, body: bytes, target: str = "/docs", headers: Mapping[str, str] | None = None
) -> Answer:
    typed = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    return send(url, "POST", target, typed | dict(headers or {}), body)


@pytest.fixture
def form(cluster: Cluster, keys: Keys, bucket: str) -> Form:
    """Return a form to a bucket of the tenant, which is empty."""
    return Form(keys, cluster.url)


def check_refused(answer: Answer, s3: Any, status: int, code: str, why: str = "") -> None:
    """Check that a form was refused, and nothing stored."""
    assert (answer.status, answer.code) == (status, code), answer.body
    assert why in unescape(answer.text("Message"))
    assert "Contents" not in s3.list_objects_v2(Bucket="docs")


def test_a_form_stores_its_file_with_what_its_fields_say(form: Form, s3: Any) -> None:
    tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    digest = base64.b64encode(hashlib.sha256(b"bytes").digest()).decode()
    form.fields = [
        ("acl", "private"),
        ("Content-Type", "text/x-own"),
        ("Cache-Control", "max-age=60"),
        ("X-Amz-Meta-Colour", "blü"),
        ("tagging", tags),
        ("x-amz-checksum-sha256", digest),
        ("x-ignore-me", "no condition speaks of it"),
    ]
    form.conditions = [
        ["StArTs-WiTh", f"${name}", ""] for name, _ in form.fields if "ignore" not in name
    ]
    # A browser sends it when it reloads a page; it is not the object's.
    answer = form.post({"cache-control": "max-age=0"})
    assert (answer.status, answer.body) == (204, b"")
    found = s3.get_object(Bucket="docs", Key="in/a.txt", ChecksumMode="ENABLED")
    assert (found["Body"].read(), found["ETag"]) == (b"bytes", answer.headers["etag"])
    assert (found["ContentType"], found["CacheControl"]) == ("text/x-own", "max-age=60")
    assert (found["ChecksumSHA256"], found["TagCount"]) == (digest, 1)
    assert answer.headers["location"] == f"{form.url}/docs/in/a.txt"


def test_forms_of_boto3_are_taken_in_both_versions(keys: Keys, cluster: Cluster, s3: Any) -> None:
    s3.create_bucket(Bucket="docs")
    older = boto3.client(
        "s3",
        endpoint_url=cluster.url,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        region_name="us-east-1",
    )
    for number, client in enumerate((s3, older)):
        made = client.generate_presigned_post(
            "docs",
            f"{number}/${{filename}}",
            Fields={"success_action_status": "201"},
            Conditions=[{"success_action_status": "201"}, ["content-length-range", 1, 9]],
        )
        assert ("AWSAccessKeyId" in made["fields"]) == (client is older)
        sent = [part(name, value.encode()) for name, value in made["fields"].items()]
        body = b"".join([*sent, part("file", b"bytes", "ä b.txt"), f"--{BOUNDARY}--".encode()])
        answer = post(made["url"], body)
        key = f"{number}/ä b.txt"
        assert (answer.status, answer.text("Key")) == (201, key)
        assert s3.get_object(Bucket="docs", Key=key)["Body"].read() == b"bytes"
    older.close()


def test_a_policy_allows_nothing_else(form: Form, s3: Any) -> None:
    denied: list[tuple[dict[str, Any], str]] = [
        ({"expires_in": -HOUR}, "expired"),
        # The key that signs is worth a week.
        ({"signed": timedelta(days=-8)}, "expired"),
        ({"signed": HOUR}, "not yet valid"),
        ({"key": "other/a.txt"}, '["starts-with","$key","in/"]'),
        ({"key": "${filename}", "filename": "in/../x"}, "$key"),
        ({"conditions": [{"bucket": "another"}]}, "$bucket"),
        ({"fields": [("bucket", "another")]}, "another bucket"),
        ({"fields": [("x-amz-meta-a", "b")]}, "Extra input fields: x-amz-meta-a"),
        ({"fields": [("unknown", "b")]}, "Extra input fields: unknown"),
        ({"conditions": [["starts-with", "$x-amz-meta-a", ""]]}, "$x-amz-meta-a"),
        ({"conditions": [["eq", "$key", "in/b.txt"]]}, "$key"),
        (
            {
                "fields": [("content-type", "image/png, text/html")],
                "conditions": [["starts-with", "$Content-Type", "image/"]],
            },
            "$content-type",
        ),
    ]
    for changes, why in denied:
        answer = changed(form, changes).post()
        check_refused(answer, s3, 403, "AccessDenied", why)
    without_bucket = {
        "expiration": "2099-01-01T00:00:00Z",
        "conditions": [
            ["starts-with", f"${name}", ""]
            for name in ("key", "x-amz-algorithm", "x-amz-credential", "x-amz-date")
        ],
    }
    answer = changed(form, {"policy": without_bucket}).post()
    check_refused(answer, s3, 403, "AccessDenied", "Extra input fields: bucket")


def changed(form: Form, changes: Mapping[str, Any]) -> Form:
    return Form(**{**vars(form), **changes})


def test_what_is_not_known_is_refused_by_its_name(form: Form, s3: Any) -> None:
    cases: list[tuple[str, str, int, str, str]] = [
        ("unknown", "a", 501, "NotImplemented", "unknown"),
        ("if-none-match", "*", 501, "NotImplemented", "if-none-match"),
        ("x-amz-website-redirect-location", "/", 501, "NotImplemented", "website"),
        ("x-amz-server-side-encryption", "aws:kms", 501, "NotImplemented", "aws:kms"),
        ("x-amz-tagging", "a=b", 501, "NotImplemented", "x-amz-tagging"),
        ("acl", "public-read", 400, "AccessControlListNotSupported", ""),
        ("x-amz-security-token", "t", 400, "InvalidToken", ""),
        ("tagging", "<Tagging/>", 400, "MalformedXML", ""),
        ("success_action_status", "404", 400, "InvalidArgument", "success_action_status"),
        ("success_action_redirect", "javascript:a", 400, "InvalidArgument", "redirect"),
        ("success_action_redirect", "http://a/\r\nb: c", 400, "InvalidArgument", "redirect"),
        ("cache-control", "a\r\nb: c", 400, "InvalidArgument", ""),
        ("x-amz-meta-a b", "c", 400, "InvalidArgument", ""),
        ("x-amz-checksum-crc32", "AAAAAA==", 400, "BadDigest", ""),
    ]
    for name, value, status, code, why in cases:
        more = {"fields": [(name, value)], "conditions": [["eq", f"${name}", value]]}
        check_refused(changed(form, more).post(), s3, status, code, why)
    # What is not in the form is not signed.
    for header, code in (
        ("x-amz-meta-a", "NotImplemented"),
        ("if-match", "NotImplemented"),
        ("content-md5", "NotImplemented"),
        ("content-encoding", "NotImplemented"),
        ("authorization", "InvalidArgument"),
        ("x-amz-security-token", "InvalidToken"),
    ):
        assert form.post({header: "a"}).code == code
    assert form.post(query="?X-Amz-Signature=a").code == "NotImplemented"
    assert form.post(query="/a.txt").code == "NotImplemented"
    check_refused(form.post(query="?delete"), s3, 501, "NotImplemented", "delete")


def test_a_changed_form_is_refused(form: Form, s3: Any) -> None:
    body = form.body()
    policy = body.partition(b'name="policy"\r\n\r\n')[2].partition(b"\r\n")[0]
    wider = base64.b64decode(policy).replace(b'"in/"', b'""')
    other = base64.b64encode(wider)
    check_refused(post(form.url, body.replace(policy, other)), s3, 403, "SignatureDoesNotMatch")
    for name in ("policy", "x-amz-signature", "x-amz-date", "x-amz-algorithm", "key"):
        renamed = body.replace(f'name="{name}"'.encode(), b'name="x-ignore-a"')
        check_refused(post(form.url, renamed), s3, 400, "InvalidArgument", name)
    for doubled in ("key", "KEY", "policy", "x-amz-signature"):
        twice = part(doubled, b"in/b") + body
        check_refused(post(form.url, twice), s3, 400, "InvalidArgument", "twice")
    anonymous = part("key", b"in/a") + part("file", b"a", "a") + f"--{BOUNDARY}--".encode()
    check_refused(post(form.url, anonymous), s3, 403, "AccessDenied")


def test_an_invalid_policy_is_named(form: Form, s3: Any) -> None:
    ends = {"expiration": "2099-01-01T00:00:00Z"}
    for policy in (
        {**ends, "conditions": []},
        {**ends, "conditions": [{}]},
        {**ends, "conditions": [{"key": "a", "acl": "b"}]},
        {**ends, "conditions": [{"key": 1}]},
        {**ends, "conditions": [["ends-with", "$key", "a"]]},
        {**ends, "conditions": [["eq", "key", "a"]]},
        {**ends, "conditions": [["content-length-range", 1]]},
        {**ends, "conditions": [["content-length-range", -1, 5]]},
        {**ends, "conditions": [["content-length-range", True, 5]]},
        {**ends, "conditions": [["content-length-range"]]},
        {**ends, "conditions": [[]]},
        {**ends, "conditions": {"key": "a"}},
        {**ends, "conditions": [{"key": "a"}], "more": 1},
        {"conditions": [{"key": "a"}]},
        {"EXPIRATION": "2099-01-01T00:00:00Z", "conditions": [{"key": "a"}]},
        {"expiration": "2099-01-01 00:00:00", "conditions": [{"key": "a"}]},
        {"expiration": "2099-13-01T00:00:00Z", "conditions": [{"key": "a"}]},
        [1],
    ):
        answer = changed(form, {"policy": policy}).post()
        check_refused(answer, s3, 400, "InvalidPolicyDocument")


def test_only_a_key_of_the_bucket_s_environment_that_may_write_signs(
    form: Form, s3: Any, cluster: Cluster
) -> None:
    other = cluster.tenant()
    check_refused(changed(form, {"keys": other}).post(), s3, 404, "NoSuchBucket")
    reader = cluster.tenant("read", like=form.keys)
    check_refused(changed(form, {"keys": reader}).post(), s3, 403, "AccessDenied")
    revoked = cluster.tenant(like=form.keys)
    cluster.call("DELETE", f"/v1/access-keys/{revoked.access_key}?{revoked.scope}")
    check_refused(changed(form, {"keys": revoked}).post(), s3, 403, "InvalidAccessKeyId")


@pytest.mark.parametrize("size", [5, 3 * 2**20])
def test_a_file_of_another_size_is_not_stored(form: Form, s3: Any, size: int) -> None:
    form.file = b"a" * size
    for low, high, code in (
        (size + 1, size + 9, "EntityTooSmall"),
        (0, size - 1, "EntityTooLarge"),
    ):
        form.conditions = [["content-length-range", low, high]]
        check_refused(form.post(), s3, 400, code)
    form.conditions = [["content-length-range", 0, size], ["content-length-range", "1", "9000000"]]
    assert form.post().status == 204
    found = s3.get_object(Bucket="docs", Key="in/a.txt")
    assert (found["Body"].read(), found["ETag"]) == (form.file, f'"{md5(form.file).hex()}"')


def test_a_form_that_is_cut_or_ambiguous_is_refused(form: Form, s3: Any) -> None:
    body = form.body()
    end = f"--{BOUNDARY}--\r\n".encode()
    start = f"--{BOUNDARY}\r\n".encode()
    disposition = b'Content-Disposition: form-data; name="x-ignore-a"'
    assert body.endswith(end)
    malformed = [
        b"",
        body.removesuffix(b"\r\n" + end),
        body.removesuffix(end) + end[:-4],
        body[:-2] + b"\n",
        b"before\r\n" + body,
        body + b"after",
        body.replace(b"\r\n", b"\n"),
        body.replace(f"\r\n--{BOUNDARY}".encode(), f"\r\n--{BOUNDARY} ".encode(), 1),
        start + b"\r\na\r\n" + body,
        start + b"Content-Type: text/plain\r\n\r\na\r\n" + body,
        start + disposition + b"\r\n" + disposition + b"\r\n\r\na\r\n" + body,
        start + disposition + b'; name="key"\r\n\r\na\r\n' + body,
        start + disposition + b"\r\nX-More: a\r\n\r\na\r\n" + body,
        start + disposition + b"\r\n folded: a\r\n\r\na\r\n" + body,
        start + disposition + b"\r\nContent-Transfer-Encoding: base64\r\n\r\na\r\n" + body,
        start + disposition + b"\r\n\r\n\xff\r\n" + body,
        part("", b"a") + body,
        body.replace(b"bytes\r\n", f"bytes\r\n--{BOUNDARY}no\r\n".encode()),
    ]
    for each in malformed:
        check_refused(post(form.url, each), s3, 400, "MalformedPOSTRequest")
    kind = "multipart/form-data"
    for text in (
        kind,
        f"{kind}; boundary=",
        f"{kind}; boundary=a; boundary=b",
        f"{kind}x; boundary=a",
    ):
        answer = post(form.url, body, headers={"content-type": text})
        check_refused(answer, s3, 400, "MalformedPOSTRequest")
    twice = body.removesuffix(end) + part("file", b"second", "b.txt") + end
    none = body.replace(b'name="file"', b'name="x-ignore-a"')
    for each in (twice, none):
        code = "IncorrectNumberOfFilesInPostRequest"
        check_refused(post(form.url, each), s3, 400, code)
    assert post(form.url, body.removesuffix(end) + part("submit", b"Send") + end).status == 204


def test_a_form_holds_no_more_than_its_bytes_may_be(form: Form, s3: Any) -> None:
    body = form.body()
    end = f"--{BOUNDARY}--\r\n".encode()
    many = b"".join(part(f"x-ignore-{number}", b"") for number in range(100_000))
    long_head = body.replace(b'filename="', b'filename="' + b"a" * 20_480)
    for each in (
        many + body,
        part("x-ignore-a", b"a" * 20_480) + body,
        long_head,
        body.removesuffix(end) + many + end,
    ):
        code = "MaxPostPreDataLengthExceededError"
        check_refused(post(form.url, each), s3, 400, code)


def test_a_file_name_is_a_name(form: Form, s3: Any) -> None:
    names = {
        "../../up.txt": "in/up.txt",
        r"C:\docs\own.txt": "in/own.txt",
        r"quoted\".txt": 'in/quoted".txt',
        "${filename}": "in/${filename}",
    }
    for filename, key in names.items():
        assert changed(form, {"filename": filename}).post().status == 204
        assert s3.head_object(Bucket="docs", Key=key)["ContentLength"] == 5
        s3.delete_object(Bucket="docs", Key=key)
    for filename in ("", "folder/", "a" * 1100):
        assert changed(form, {"filename": filename}).post().status == 400
    check_refused(changed(form, {"filename": "a\0b"}).post(), s3, 400, "MalformedPOSTRequest")
    check_refused(changed(form, {"key": "in/a\0b"}).post(), s3, 400, "InvalidArgument", "NUL")


def test_a_file_arrives_byte_for_byte_however_it_is_cut(form: Form, s3: Any) -> None:
    form.file = f"\r\n--{BOUNDARY[:-1]}\r\n--\r\n\r\n{BOUNDARY}\r".encode() * 40 + b"\r\n"
    body = form.body()
    parts = urlsplit(form.url)
    for size in (1, 7, len(BOUNDARY) + 4):
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        connection.putrequest("POST", "/docs")
        connection.putheader("content-type", f'Multipart/Form-Data; boundary="{BOUNDARY}"')
        connection.putheader("content-length", str(len(body)))
        connection.endheaders()
        for start in range(0, len(body), size):
            connection.send(body[start : start + size])
        assert connection.getresponse().status == 204
        connection.close()
        assert s3.get_object(Bucket="docs", Key="in/a.txt")["Body"].read() == form.file


def test_a_form_says_what_follows_it(form: Form, cluster: Cluster) -> None:
    form.conditions = [["starts-with", "$success_action_status", ""]]
    form.fields = [("success_action_status", "200")]
    assert (form.post().status, form.post().body) == (200, b"")
    form.fields = [("success_action_status", "201")]
    answer = form.post({"host": f"127.0.0.1:{cluster.port}"})
    assert (answer.status, answer.text("Bucket"), answer.text("Key")) == (201, "docs", "in/a.txt")
    assert answer.text("ETag").replace("&quot;", '"') == answer.headers["etag"]
    form.conditions.append(["eq", "$success_action_redirect", "https://example.com/?a=b#c"])
    form.fields.append(("success_action_redirect", "https://example.com/?a=b#c"))
    answer = form.post()
    address = urlsplit(answer.headers["location"])
    assert (answer.status, address.netloc, address.fragment) == (303, "example.com", "c")
    assert parse_qs(address.query) == {
        "a": ["b"],
        "bucket": ["docs"],
        "key": ["in/a.txt"],
        "etag": [answer.headers["etag"]],
    }


def test_a_page_of_another_origin_reads_what_the_bucket_s_rules_allow(form: Form, s3: Any) -> None:
    page = {"origin": "https://app.example.com"}
    assert "access-control-allow-origin" not in form.post(page).headers
    rule = {"AllowedOrigins": [page["origin"]], "AllowedMethods": ["POST"]}
    s3.put_bucket_cors(Bucket="docs", CORSConfiguration={"CORSRules": [rule]})
    for each in (form, changed(form, {"key": "other"})):
        assert each.post(page).headers["access-control-allow-origin"] == page["origin"]
    # Also why a form cannot be read.
    for unread in (changed(form, {"key": ""}), changed(form, {"fields": [("x", 30_000 * "x")]})):
        answer = unread.post(page)
        assert answer.status == 400
        assert answer.headers["access-control-allow-origin"] == page["origin"]
        foreign = unread.post({"origin": "https://other.example.com"})
        assert "access-control-allow-origin" not in foreign.headers


def test_a_form_is_posted_to_the_bucket_s_own_name(form: Form, s3: Any, cluster: Cluster) -> None:
    for host in ("docs.localhost", "other.localhost"):
        answer = post(form.url, form.body(), "/", {"host": f"{host}:{cluster.port}"})
        if host.startswith("other"):
            assert (answer.status, answer.code) == (403, "AccessDenied")
        else:
            assert answer.headers["location"] == f"http://{host}:{cluster.port}/in/a.txt"
    assert s3.get_object(Bucket="docs", Key="in/a.txt")["Body"].read() == b"bytes"
