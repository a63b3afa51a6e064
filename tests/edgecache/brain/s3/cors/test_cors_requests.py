"""Preflights, and the CORS headers of answers: by the bucket's rules, for each Origin its own."""

import secrets
from typing import Any

import pytest

from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys

APP = "https://app.example.com"
OTHER = "https://other.example.com"
RULES = [
    {
        "AllowedHeaders": ["x-amz-*", "Content-Type"],
        "AllowedMethods": ["PUT", "GET"],
        "AllowedOrigins": [APP, "https://*.example.org"],
        "ExposeHeaders": ["ETag", "x-amz-request-id"],
        "MaxAgeSeconds": 3000,
    },
    {"AllowedMethods": ["HEAD", "DELETE"], "AllowedOrigins": ["*"]},
]
VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"
ALLOW_ORIGIN = "access-control-allow-origin"


@pytest.fixture
def name(s3: Any) -> str:
    """Return a bucket with rules and with a name that no other tenant has."""
    name = f"cors-{secrets.token_hex(8)}"
    s3.create_bucket(Bucket=name)
    s3.put_bucket_cors(Bucket=name, CORSConfiguration={"CORSRules": RULES})
    s3.put_object(Bucket=name, Key="k", Body=b"bytes")
    return name


@pytest.fixture
def signer(cluster: Cluster, keys: Keys) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


def ask(
    cluster: Cluster, target: str, method: str = "PUT", origin: str = APP, headers: str = ""
) -> Answer:
    """Send a preflight."""
    asked = {"origin": origin, "access-control-request-method": method}
    if headers:
        asked["access-control-request-headers"] = headers
    return send(cluster.url, "OPTIONS", target, asked)


def granted(answer: Answer) -> dict[str, str]:
    """Return the CORS headers of a response."""
    return {key: value for key, value in answer.headers.items() if key.startswith("access-")}


def test_a_preflight_is_answered_by_the_rules(cluster: Cluster, name: str) -> None:
    answer = ask(cluster, f"/{name}/new/key", headers="X-Amz-Date,content-type")
    assert (answer.status, answer.body, answer.headers["vary"]) == (200, b"", VARY)
    assert granted(answer) == {
        ALLOW_ORIGIN: APP,
        "access-control-allow-methods": "PUT, GET",
        "access-control-allow-credentials": "true",
        "access-control-expose-headers": "ETag, x-amz-request-id",
        "access-control-max-age": "3000",
        "access-control-allow-headers": "x-amz-date, content-type",
    }
    wide = ask(cluster, f"/{name}/k", "DELETE", OTHER)
    assert granted(wide) == {ALLOW_ORIGIN: "*", "access-control-allow-methods": "HEAD, DELETE"}
    below = "https://a.b.example.org"
    assert granted(ask(cluster, f"/{name}", "GET", below))[ALLOW_ORIGIN] == below


def test_a_preflight_that_no_rule_allows_is_refused(cluster: Cluster, name: str) -> None:
    for method, origin, headers in [
        ("PUT", OTHER, ""),
        ("PUT", "https://example.org", ""),
        ("PUT", "http://app.example.com", ""),
        ("PUT", f"{APP}.evil.example", ""),
        ("POST", APP, ""),
        ("PUT", APP, "authorization"),
        ("PUT", APP, "x-amz-date, cookie"),
        ("DELETE", OTHER, "x-amz-date"),
        ("PUT", APP, "x-amz-a:b"),
    ]:
        answer = ask(cluster, f"/{name}/k", method, origin, headers)
        assert (answer.status, answer.code, granted(answer)) == (403, "AccessForbidden", {})


def test_a_refused_preflight_does_not_tell_whether_the_bucket_exists(
    cluster: Cluster, s3: Any, name: str
) -> None:
    plain = f"plain-{secrets.token_hex(8)}"
    s3.create_bucket(Bucket=plain)
    answers = [
        ask(cluster, f"/{bucket}/k", origin=OTHER) for bucket in (name, plain, "absent-bucket")
    ]
    texts = {(each.status, each.code, each.text("Message"), str(granted(each))) for each in answers}
    assert len(texts) == 1
    names = [set(each.headers) for each in answers]
    assert names[0] == names[1] == names[2]


def test_options_without_a_preflight_s_headers_is_a_bad_request(
    cluster: Cluster, name: str
) -> None:
    for headers in (
        {},
        {"origin": APP},
        {"access-control-request-method": "PUT"},
        {"origin": APP, "access-control-request-method": "PATCH"},
    ):
        answer = send(cluster.url, "OPTIONS", f"/{name}/k", headers)
        assert (answer.status, answer.code) == (400, "BadRequest"), headers


def test_the_preflight_of_a_presigned_request_falls_under_its_own_bucket(
    cluster: Cluster, signer: Signer, s3: Any, name: str
) -> None:
    charlie = Signer(cluster.tenant(), cluster.url)
    assert charlie.send("PUT", f"/{name}").status == 200
    target = signer.presign("PUT", f"/{name}/up")
    assert granted(ask(cluster, target))[ALLOW_ORIGIN] == APP
    put = send(cluster.url, "PUT", target, {"origin": APP}, b"by link")
    assert (put.status, granted(put)[ALLOW_ORIGIN]) == (200, APP)
    # Charlie's bucket of the same name has no rules.
    theirs = charlie.presign("PUT", f"/{name}/up")
    assert ask(cluster, theirs).status == 403
    other = send(cluster.url, "PUT", theirs, {"origin": APP}, b"by link")
    assert (other.status, granted(other)) == (200, {})
    s3.delete_bucket_cors(Bucket=name)
    assert ask(cluster, target).status == 403


def test_the_host_name_may_contain_the_bucket(cluster: Cluster, signer: Signer, name: str) -> None:
    host = f"{name}.localhost:{cluster.port}"
    asked = {"host": host, "origin": APP, "access-control-request-method": "PUT"}
    assert granted(send(cluster.url, "OPTIONS", "/k", asked))[ALLOW_ORIGIN] == APP
    target = Signer(signer.keys, f"http://{host}").presign("GET", "/k")
    got = send(cluster.url, "GET", target, {"host": host, "origin": APP})
    assert (got.body, granted(got)[ALLOW_ORIGIN]) == (b"bytes", APP)


def test_every_answer_has_the_headers_of_its_origin(
    cluster: Cluster, signer: Signer, name: str
) -> None:
    def get(target: str = "k", method: str = "GET", **headers: str) -> Answer:
        return signer.send(method, f"/{name}/{target}", headers={"origin": APP, **headers})

    etag = get().headers["etag"]
    for answer, status in (
        (get(), 200),
        (get(range="bytes=0-1"), 206),
        (get(**{"if-none-match": etag}), 304),
        (get("absent"), 404),
        (get(range="bytes=99-"), 416),
        (get(method="PUT"), 200),
        (get("k?uploadId=x"), 404),
    ):
        assert (answer.status, answer.headers["vary"]) == (status, VARY)
        assert granted(answer)[ALLOW_ORIGIN] == APP
        assert granted(answer)["access-control-expose-headers"] == "ETag, x-amz-request-id"
    wrong = Signer(Keys(1, 1, signer.keys.access_key, "x" * 40), cluster.url)
    refused = wrong.send("GET", f"/{name}/k", headers={"origin": APP})
    assert (refused.code, granted(refused)[ALLOW_ORIGIN]) == ("SignatureDoesNotMatch", APP)
    listed = signer.send("GET", f"/{name}", headers={"origin": APP})
    assert (listed.status, granted(listed)[ALLOW_ORIGIN]) == (200, APP)
    # Its rule is another one, for every origin.
    head = signer.send("HEAD", f"/{name}/k", headers={"origin": OTHER})
    assert granted(head)[ALLOW_ORIGIN] == "*"


def test_repeated_reads_do_not_mix_origins(signer: Signer, name: str) -> None:
    sub = "https://a.example.org"
    for _ in range(3):
        for origin in (APP, sub, OTHER, ""):
            headers = {"origin": origin} if origin else {}
            answer = signer.send("GET", f"/{name}/k", headers=headers)
            assert answer.body == b"bytes"
            allowed = granted(answer).get(ALLOW_ORIGIN)
            assert allowed == (origin if origin in {APP, sub} else None)
            assert answer.headers.get("vary") == (VARY if origin else None)


def test_a_bucket_without_rules_sends_no_cors_headers(signer: Signer, bucket: str) -> None:
    answer = signer.send("GET", f"/{bucket}/absent", headers={"origin": APP})
    assert "vary" not in answer.headers
    assert granted(answer) == {}


def test_public_names_follow_the_rules(
    cluster: Cluster, keys: Keys, signer: Signer, name: str
) -> None:
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    change = f"/v1/buckets/{row['id']}?{keys.scope}"
    paths = (f"/{row['public_name']}/k", f"/p/{row['public_name']}/k")
    for path in paths:
        assert granted(ask(cluster, path, "GET")) == {}
    cluster.call("PATCH", change, {"is_public": True})
    for path in paths:
        assert granted(ask(cluster, path, "GET"))[ALLOW_ORIGIN] == APP
        assert ask(cluster, path, "GET", OTHER).status == 403
        for origin, allowed in ((APP, APP), (OTHER, None), (APP, APP)):
            got = send(cluster.url, "GET", path, {"origin": origin})
            assert (got.body, granted(got).get(ALLOW_ORIGIN)) == (b"bytes", allowed), path
            assert got.headers["vary"] == VARY
        # An unverified key of the platform's, without a signature that would be checked.
        claimed = f"{path}?X-Amz-Credential=zp-x&x-zonal-origin={OTHER}"
        assert ALLOW_ORIGIN not in granted(send(cluster.url, "GET", claimed, {"origin": OTHER}))
        assert ask(cluster, claimed, "PUT", OTHER).status == 403
        absent = send(cluster.url, "GET", path + "absent", {"origin": APP})
        assert (absent.status, granted(absent)[ALLOW_ORIGIN]) == (404, APP)


def test_a_page_is_not_redirected_to_a_worker(
    cluster: Cluster, keys: Keys, signer: Signer, name: str
) -> None:
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"allows_redirect": True})
    target = signer.presign("GET", f"/{name}/k")
    assert send(cluster.url, "GET", target, {"origin": APP}).status == 200
