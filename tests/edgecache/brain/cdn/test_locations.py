"""URLs in an origin's headers lead where the origin meant, also in a browser.

Source: WHATWG URL Standard §4.4, which browsers follow. The results here are those of Node.js,
which follows it, too.
"""

import pytest

from tests.edgecache.brain.cdn.conftest import CdnBucket, OriginAnswer
from tests.edgecache.brain.cdn.test_caching import until
from tests.edgecache.brain.s3.raw import Answer, send

TOKEN = "0" * 64

# What the origin says on /page, and what the client gets at a host of its own. {o}: the origin's
# URL, {h}: its host and port.
AT_OWN_HOST = {
    "{o}//evil.example/x/": "/.//evil.example/x/",
    "{o}///evil.example/": "/.///evil.example/",
    "{o}/\\evil.example": "/.//evil.example",
    "{o}\\\\evil.example?a#b": "/.//evil.example?a#b",
    "{o}/\t/evil.example": "/.//evil.example",
    "{o}/a/..//evil.example": "/.//evil.example",
    "{o}/%2E//evil.example": "/.//evil.example",
    "\x01{o}//evil.example": "/.//evil.example",
    "//{h}//evil.example": "/.//evil.example",
    "\\\\{h}\\\\evil.example": "/.//evil.example",
    "http:///{h}//evil.example": "/.//evil.example",
    "HTTP://{h}//evil.example": "/.//evil.example",
    "https://{h}//evil.example": "/.//evil.example",
    "/.//evil.example": "/.//evil.example",
    "http:evil.example": "/evil.example",
    "http:/evil.example": "/evil.example",
    "{o}/b?c#d": "/b?c#d",
    "{o}": "/",
    "/b%2Fc?d#e": "/b%2Fc?d#e",
    "b": "b",
    "../../b": "../../b",
    "?a=1": "?a=1",
    "https://{h}/b": "/b",
    # Only the scheme is to change: at the cache, this would be a redirect to itself.
    "https://{h}/page": "https://{h}/page",
    # The origin itself sends its clients there.
    "//evil.example/x": "http://evil.example/x",
    "/\\evil.example/x": "http://evil.example/x",
    "/\t/evil.example/x": "http://evil.example/x",
    "///evil.example": "http://evil.example/",
    "https:evil.example": "https://evil.example/",
    "https://elsewhere.example/b?c#d": "https://elsewhere.example/b?c#d",
    "{o}@elsewhere.example/b": "{o}@elsewhere.example/b",
    "http://a@{h}/b": "http://a@{h}/b",
    "http://elsewhere.example:b/": "http://elsewhere.example:b/",
    "mailto:a@example.org": "mailto:a@example.org",
}
# {c}: the path of the bucket at the host that all share.
AT_SHARED_HOST = {
    "{o}//evil.example": "{c}//evil.example",
    "{o}/\\evil.example": "{c}//evil.example",
    "/b?c#d": "{c}/b?c#d",
    "../../other/b": "{c}/other/b",
    "/../other/b": "{c}/other/b",
    "b": "b",
    "./b": "./b",
    "//evil.example": "http://evil.example/",
}
REFRESH = {
    "5": "5",
    "0;url={o}//evil.example": "0;url=/.//evil.example",
    '0; URL = "{o}//evil.example" x': '0; URL = "/.//evil.example"',
    "3 '{o}/b'": "3 '/b'",
    "0,{o}/b;c": "0,/b;c",
    "1.5;b": "1.5;b",
    "0;url=https://elsewhere.example/": "0;url=https://elsewhere.example/",
}
LINK = {
    "<{o}//evil.example>; rel=next": "</.//evil.example>; rel=next",
    '</a>; title="<{o}/b>, \\"", <{o}/b>; rel=next': '</a>; title="<{o}/b>, \\"", </b>; rel=next',
    "<https://elsewhere.example/>; rel=canonical": "<https://elsewhere.example/>; rel=canonical",
}


@pytest.fixture
def at_own_host(cdn_bucket: CdnBucket) -> CdnBucket:
    """Return a bucket that has a host of its own."""
    fields = {"host": host_of(cdn_bucket), "token": TOKEN, "seen": [TOKEN]}
    path = f"/v1/buckets/{cdn_bucket.bucket_id}/hosts?{cdn_bucket.scope}"
    cdn_bucket.cluster.call("POST", path, fields)
    return cdn_bucket


def host_of(bucket: CdnBucket) -> str:
    """Return the bucket's own host."""
    return f"{bucket.public_name}.example.org".lower()


def ask(bucket: CdnBucket, target: str, method: str = "GET") -> Answer:
    """Send a request to the bucket's own host."""
    return send(bucket.cluster.url, method, target, {"host": host_of(bucket)})


def spelled(text: str, bucket: CdnBucket) -> str:
    """Return a text with the URLs of the test."""
    url = bucket.origin.url.rstrip("/")
    host = url.removeprefix("http://")
    return text.format(o=url, h=host, c=f"/p/{bucket.public_name}")


@pytest.mark.parametrize("field", ["location", "content-location"])
@pytest.mark.parametrize(("said", "arrives"), AT_OWN_HOST.items(), ids=ascii)
def test_a_location_leads_where_the_origin_meant(
    at_own_host: CdnBucket, field: str, said: str, arrives: str
) -> None:
    fields = {field: spelled(said, at_own_host)}
    at_own_host.origin.said["/page"] = OriginAnswer(301, fields, b"")
    assert ask(at_own_host, "/page").headers[field] == spelled(arrives, at_own_host)


@pytest.mark.parametrize(("said", "arrives"), AT_SHARED_HOST.items(), ids=ascii)
def test_a_location_of_a_bucket_stays_in_it(cdn_bucket: CdnBucket, said: str, arrives: str) -> None:
    fields = {"location": spelled(said, cdn_bucket)}
    cdn_bucket.origin.said["/page"] = OriginAnswer(301, fields, b"")
    answer = cdn_bucket.get("/page")
    assert answer.headers["location"] == spelled(arrives, cdn_bucket)


@pytest.mark.parametrize(
    ("field", "said", "arrives"),
    [
        *(("refresh", said, arrives) for said, arrives in REFRESH.items()),
        *(("link", said, arrives) for said, arrives in LINK.items()),
    ],
)
def test_other_headers_with_urls_are_rewritten_alike(
    at_own_host: CdnBucket, field: str, said: str, arrives: str
) -> None:
    fields = {field: spelled(said, at_own_host)}
    at_own_host.origin.said["/page"] = OriginAnswer(200, fields, b"")
    assert ask(at_own_host, "/page").headers[field] == spelled(arrives, at_own_host)


def test_a_safe_redirect_is_kept_safe_for_every_client(at_own_host: CdnBucket) -> None:
    # As servers do that add a slash.
    fields = {"location": f"{at_own_host.origin.url}/evil.example/x/"}
    fields["Cache-Control"] = "max-age=600"
    # The origin's server takes two slashes for one.
    at_own_host.origin.said["/evil.example/x"] = OriginAnswer(301, fields, b"")
    target = "//evil.example/x"
    assert ask(at_own_host, target).headers["location"] == "/.//evil.example/x/"
    until(lambda: "hit" in ask(at_own_host, target).headers["cache-status"])
    assert ask(at_own_host, target).headers["location"] == "/.//evil.example/x/"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_answer_to_an_unsafe_request_is_rewritten_alike(
    at_own_host: CdnBucket, method: str
) -> None:
    at_own_host.switch(forwards_writes=True)
    fields = {"location": f"{at_own_host.origin.url}/evil.example"}
    at_own_host.origin.said[f"{method} /page"] = OriginAnswer(303, fields, b"")
    assert ask(at_own_host, "/page", method).headers["location"] == "/.//evil.example"
