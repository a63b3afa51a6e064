"""Signed links open what was signed, at a public door, until they expire, and nothing else."""

import time
import urllib.error
from types import SimpleNamespace
from typing import Any

import pytest

from edgecache.brain.access.signed_links import LinkKeys, split
from edgecache.brain.core.errors import LinkRefused
from edgecache.brain.http_caching.cache_keys import target_of
from tests.edgecache.brain.brains import ALICE, Brain
from tests.edgecache.brain.cdn.conftest import CdnBucket, Origin, OriginAnswer
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.cdn.test_locations import TOKEN, host_of
from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys

CORS = (
    "<CORSConfiguration><CORSRule><AllowedOrigin>https://app.example</AllowedOrigin>"
    "<AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>"
)


def tenant_of(bucket: CdnBucket) -> dict[str, int]:
    """Return the tenant as the internal API takes it."""
    return {name: int(value) for name, value in (p.split("=") for p in bucket.scope.split("&"))}


def link(bucket: CdnBucket, name: str = "cdn-bucket", **opens: Any) -> str:
    """Return what follows the object API's URL in a link."""
    wanted = {"expires_s": 60, "endpoint": bucket.cluster.url, **opens}
    made = bucket.cluster.call(
        "POST", "/v1/objects/signed-links", {**tenant_of(bucket), "bucket": name, **wanted}
    )
    return str(made["url"]).removeprefix(bucket.cluster.url)


def ask(bucket: CdnBucket, target: str, method: str = "GET", **headers: str) -> Answer:
    """Send a request without credentials."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return send(bucket.cluster.url, method, target, fields)


def refused(answer: Answer) -> str:
    """Return the cause of a refusal, which no cache may keep."""
    assert answer.status == 403, answer
    assert answer.headers["cache-control"] == "no-store"
    return answer.headers["cache-status"].removeprefix("Zonal; detail=")


@pytest.fixture
def private(cdn_bucket: CdnBucket) -> CdnBucket:
    """Return a private bucket; its origin has pages."""
    for path in ("/a/b.txt", "/a/c/d", "/secret", "/a%2Fb.txt", "/a/b.txt?v=1", "/a/b.txt?v=2"):
        cdn_bucket.respond(path, "public, max-age=600, s-maxage=900", path.encode())
    cdn_bucket.switch(is_public=False)
    return cdn_bucket


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("signature=", "signature=0"),
        ("signature=", "signature="),
        ("zonal-expires=", "zonal-expires=9"),
        ("zonal-expires=", "zonal-expires=0"),
        ("zonal-expires=", "zonal-expires=%31"),
        ("b.txt", "b.txt2"),
        ("b.txt", "b"),
        ("a/b.txt", "secret"),
        ("a/b.txt", "a%2Fb.txt"),
        ("a/b.txt", "%61/b.txt"),
        ("a/b.txt", "a/./b.txt"),
        ("a/b.txt", "x/../a/b.txt"),
        ("v=1", "v=2"),
        ("v=1&", ""),
        ("v=1", "v=1&w=1"),
        ("v=1", "v=1&zonal-other=1"),
        ("v=1", "v=1&zonal-prefix="),
        ("v=1", "v=1&zonal-prefix=a/"),
        ("v=1", "v=1&zonal-prefix=%ff"),
        ("v=1", "v=1&zonal-expires=9999999999"),
        ("v=1", "v=1&zonal-signature=00"),
        ("zonal-signature", "Zonal-Signature"),
        ("zonal-signature", "%7Aonal-signature"),
        ("zonal-signature", "zonal-signature2"),
        ("&zonal-expires", "&"),
    ],
)
def test_a_changed_link_is_refused(private: CdnBucket, old: str, new: str) -> None:
    made = link(private, key="a/b.txt", query="v=1")
    assert old in made
    changed = made.replace(old, new)
    if old == new:
        # The signature in capitals.
        head, _, signature = made.partition(old)
        changed = f"{head}{old}{signature.upper()}"
    assert refused(ask(private, changed)) == "link-refused"
    assert private.origin.asked == []


def test_a_link_of_another_bucket_or_environment_is_refused(
    private: CdnBucket, cluster: Cluster, origin: Origin
) -> None:
    fields = {"name": "other", "is_public": False}
    other = cluster.call("POST", f"/v1/buckets?{private.scope}", fields)
    foreign = cluster.call("POST", f"/v1/buckets?{cluster.tenant().scope}", fields)
    for row in (other, foreign):
        made = link(private, key="a/b.txt").replace(private.public_name, row["public_name"])
        assert refused(ask(private, made)) == "link-refused"
    theirs = link(private, name="other", key="a/b.txt")
    stolen = theirs.replace(other["public_name"], private.public_name)
    assert refused(ask(private, stolen)) == "link-refused"
    assert origin.asked == []


def test_a_link_opens_a_page_of_a_private_bucket(private: CdnBucket) -> None:
    made = link(private, key="a/b.txt", query="v=1")
    assert "uri-miss" in ask(private, made).headers["cache-status"]
    until(lambda: "hit" in ask(private, made).headers["cache-status"])
    assert ask(private, made).body == b"/a/b.txt?v=1"
    head = ask(private, made, "HEAD")
    assert (head.status, head.body) == (200, b"")
    part = ask(private, made, range="bytes=0-1")
    assert (part.status, part.body) == (206, b"/a")
    assert private.get("/a/b.txt?v=1").status == 404
    # The origin learns nothing of it, and the page is kept as for everyone.
    assert {each.path for each in private.origin.asked} == {"/a/b.txt?v=1"}
    assert "zonal-" not in str([each.headers for each in private.origin.asked])
    private.switch(is_public=True)
    assert "hit" in private.get("/a/b.txt?v=1").headers["cache-status"]
    log = private.cluster.log
    assert "signature" not in log
    assert made.rpartition("=")[2] not in log


def test_only_its_client_may_keep_an_answer_and_not_for_longer(private: CdnBucket) -> None:
    fields = {
        "Cache-Control": "public, max-age=600, stale-while-revalidate=999, immutable",
        "CDN-Cache-Control": "max-age=900",
        "Surrogate-Control": "max-age=900",
        "Expires": "Thu, 01 Jan 2099 00:00:00 GMT",
        "Referrer-Policy": "unsafe-url",
    }
    private.origin.said["/a/b.txt"] = OriginAnswer(200, fields, b"x")
    made = link(private, key="a/b.txt")
    for answer in (ask(private, made), ask(private, made)):
        private_word, _, seconds = answer.headers["cache-control"].partition(", max-age=")
        assert private_word == "private"
        assert 0 < int(seconds) <= 61
        assert {"expires", "cdn-cache-control", "surrogate-control"}.isdisjoint(answer.headers)
        assert answer.headers["referrer-policy"].endswith("no-referrer")


@pytest.mark.parametrize("control", ["Cache-Control", "CDN-Cache-Control"])
def test_what_must_arrive_as_it_is_does_so_by_a_link(private: CdnBucket, control: str) -> None:
    fields = {"Content-Type": "text/css", control: "max-age=600, no-transform"}
    private.origin.said["/a/b.css"] = OriginAnswer(200, fields, 2000 * b"x")
    made = link(private, key="a/b.css")
    until(lambda: "hit" in ask(private, made).headers["cache-status"])
    assert ask(private, made, accept_encoding="gzip").body == 2000 * b"x"


def test_a_prefix_opens_all_below_it(private: CdnBucket) -> None:
    made = link(private, prefix="a/")
    query = made.partition("?")[2]
    base = made.partition("/a/?")[0]
    assert ask(private, f"{base}/a/b.txt?{query}").body == b"/a/b.txt"
    assert ask(private, f"{base}/a/c/d?{query}").body == b"/a/c/d"
    assert ask(private, f"{base}/a/b.txt?v=2&{query}").body == b"/a/b.txt?v=2"
    assert ask(private, f"{base}/%61/b.txt?{query}").status == 404
    asked = len(private.origin.asked)
    for path in (
        "/secret",
        "/",
        "/a",
        "/b/a/",
        "//a/b.txt",
        "/a/../secret",
        "/a/%2e%2E/secret",
        "/a/..%2Fsecret",
        "/a%2F..%2Fsecret",
        "/a/..;/secret",
        "/a/..%5Csecret",
        "/a/..\\secret",
        "/a/./b.txt",
        "/a%2Fb.txt",
        "/a%5Cb.txt",
    ):
        assert refused(ask(private, f"{base}{path}?{query}")) == "link-refused", path
    for changed in ("zonal-prefix=a/c/", "zonal-prefix=a", "zonal-prefix=a%2F..%2F"):
        target = f"{base}/a/c/d?{query.replace('zonal-prefix=a/', changed)}"
        assert refused(ask(private, target)) == "link-refused", changed
    as_key = query.replace("zonal-prefix=a/&", "")
    assert as_key != query
    assert refused(ask(private, f"{base}/a/?{as_key}")) == "link-refused"
    assert len(private.origin.asked) == asked


def test_a_public_bucket_checks_links_too(cdn_bucket: CdnBucket) -> None:
    cdn_bucket.respond("/a", "max-age=600", b"x")
    made = link(cdn_bucket, key="a")
    good = ask(cdn_bucket, made)
    assert (good.status, good.headers["cache-control"].partition(",")[0]) == (200, "private")
    assert refused(ask(cdn_bucket, made[:-1])) == "link-refused"
    assert refused(cdn_bucket.get("/a?zonal-anything")) == "link-refused"
    assert cdn_bucket.get("/a").headers["cache-control"] == "max-age=600"


def test_a_link_reads_and_nothing_else(private: CdnBucket) -> None:
    private.switch(forwards_writes=True)
    made = link(private, prefix="a/").replace("/a/?", "/a/b.txt?")
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PURGE"):
        answer = ask(private, made, method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD"), method
        assert refused(ask(private, made[:-1], method)) if method in {"POST", "PUT"} else True
    assert private.origin.asked == []


def signed_at(bucket: CdnBucket, secret: str, expires_at: int) -> str:
    """Return a link to ``a/b.txt`` as a brain with another clock or secret signs it."""
    row: Any = SimpleNamespace(
        public_name=bucket.public_name, links_generation=0, origin_id=1, tenant=ALICE
    )
    query = LinkKeys([secret]).signed_query(row, "a/b.txt", expires_at=expires_at, is_prefix=False)
    return f"/p/{bucket.public_name}/a/b.txt?{query}"


def test_a_link_ends(private: CdnBucket) -> None:
    now = int(time.time())
    secret = private.cluster.secret
    assert ask(private, signed_at(private, secret, now + 60)).status == 200
    assert refused(ask(private, signed_at(private, secret, now - 1))) == "link-expired"
    # Who has no right link does not learn that it would have expired.
    assert refused(ask(private, signed_at(private, "x" * 32, now - 1))) == "link-refused"


def test_a_link_opens_the_same_at_each_host(private: CdnBucket) -> None:
    fields = {"host": host_of(private), "token": TOKEN, "seen": [TOKEN]}
    path = f"/v1/buckets/{private.bucket_id}/hosts?{private.scope}"
    private.cluster.call("POST", path, fields)
    made = link(private, key="a/b.txt")
    target = made.replace(f"/p/{private.public_name}", "")
    assert ask(private, target, host=host_of(private)).body == b"/a/b.txt"
    assert ask(private, target.partition("?")[0], host=host_of(private)).status == 404
    named = link(private, key="a/b.txt", host=host_of(private))
    assert named.startswith(f"http://{host_of(private)}/a/b.txt?zonal-expires=")


def test_all_links_of_a_bucket_are_revoked(private: CdnBucket) -> None:
    made = link(private, key="a/b.txt")
    assert ask(private, made).status == 200
    path = f"/v1/buckets/{private.bucket_id}/signed-links?{private.scope}"
    private.cluster.call("DELETE", path)
    assert refused(ask(private, made)) == "link-refused"
    assert ask(private, link(private, key="a/b.txt")).status == 200


async def test_every_brain_knows_a_revocation(brain: Brain, other: Brain) -> None:
    bucket = await brain.bucket()
    assert (await other.directory.bucket_by_id(bucket.id)).links_generation == 0
    await brain.buckets.revoke_links(ALICE, bucket.id)
    assert (await other.directory.bucket_by_id(bucket.id)).links_generation == 1


def test_links_of_an_earlier_secret_are_valid_while_it_is_accepted() -> None:
    row: Any = SimpleNamespace(public_name="name", links_generation=3, origin_id=None)
    old = LinkKeys(["a" * 32]).signed_query(row, "k", expires_at=10, is_prefix=False)
    for secrets, is_open in ((["b" * 32, "a" * 32], True), (["b" * 32], False)):
        assert _opens(LinkKeys(secrets), row, old) is is_open


def _opens(keys: LinkKeys, row: Any, query: str) -> bool:
    rest, claims = split(query)
    assert claims is not None
    try:
        keys.check(row, target_of("k", "k", rest), claims, is_http=False, now=1.0)
    except LinkRefused:
        return False
    return True


@pytest.fixture
def stored(cdn_bucket: CdnBucket) -> tuple[CdnBucket, Signer]:
    """Return a tenant, and the signer of its private bucket ``files`` with objects of its own."""
    cluster = cdn_bucket.cluster
    tenant = tenant_of(cdn_bucket)
    keys = cluster.tenant(like=Keys(**tenant, access_key="", secret_key=""))
    cluster.call("POST", f"/v1/buckets?{cdn_bucket.scope}", {"name": "files"})
    signer = Signer(keys, cluster.url)
    for key in ("/files/a/%C3%BC%20b%3F.txt", "/files/a/..%2Fsecret"):
        assert signer.send("PUT", key, body=b"stored").status == 200
    return cdn_bucket, signer


def test_a_link_opens_an_object_of_the_built_in_origin(stored: tuple[CdnBucket, Signer]) -> None:
    bucket, _ = stored
    made = link(bucket, name="files", key="a/ü b?.txt")
    answer = ask(bucket, f"{made}&utm_source=mail")
    assert (answer.body, answer.headers["cache-control"]) == (b"stored", "private, max-age=0")
    again = ask(bucket, made, if_none_match=answer.headers["etag"])
    assert (again.status, again.headers["cache-control"]) == (304, "private, max-age=0")
    below = link(bucket, name="files", prefix="a/")
    assert ask(bucket, below.replace("/a/?", "/a/%c3%bc%20b%3f.txt?")).status == 200
    for path in ("/a/..%2Fsecret?", "/a/../secret?"):
        assert refused(ask(bucket, below.replace("/a/?", path))) == "link-refused"


def test_scripts_of_allowed_origins_may_read_by_a_link(stored: tuple[CdnBucket, Signer]) -> None:
    bucket, signer = stored
    assert signer.send("PUT", "/files?cors=", CORS.encode()).status == 200
    made = link(bucket, name="files", key="a/ü b?.txt")
    origin = {"origin": "https://app.example"}
    assert ask(bucket, made, **origin).headers["access-control-allow-origin"]
    preflight = ask(bucket, made, "OPTIONS", **origin, access_control_request_method="GET")
    assert preflight.status == 200
    hidden = ask(bucket, made.partition("?")[0], **origin)
    assert (hidden.status, "access-control-allow-origin" in hidden.headers) == (404, False)


@pytest.mark.parametrize(
    ("opens", "field"),
    [
        ({}, "key"),
        ({"key": "a", "prefix": "a/"}, "key"),
        ({"prefix": "a/", "query": "v=1"}, "query"),
        ({"key": "a", "query": "zonal-prefix=a"}, "query"),
        ({"key": "a", "query": "v=1#x"}, "query"),
        ({"key": "a", "query": "v=a b"}, "query"),
        ({"key": "a/../b"}, ""),
        ({"prefix": "../"}, ""),
        ({"key": "a", "expires_s": 365 * 86_400 + 1}, "expires_s"),
        ({"key": "a", "expires_s": 0}, "expires_s"),
    ],
    ids=str,
)
def test_what_no_link_opens_is_not_signed(
    cdn_bucket: CdnBucket, opens: dict[str, Any], field: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        link(cdn_bucket, **opens)
    assert error.value.code == 400
    assert field in error.value.read().decode()
