"""The examples that AWS publishes: its requests, its keys, its signatures."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request, parse
from edgecache.brain.aws.sigv4 import chunks
from edgecache.brain.aws.sigv4.verification import StreamSigning, claims_of, verify
from edgecache.http.headers import Headers
from edgecache.http.scope import HttpScope

ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
NOW = datetime(2013, 5, 24, 0, 0, 0, tzinfo=UTC)
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
HOST = "examplebucket.s3.amazonaws.com"


def request(
    method: str, path: str, query: str, headers: dict[str, str], host: str = HOST
) -> S3Request:
    """Return a request as the server reads it."""
    pairs = [("host", host), *headers.items()]
    return parse(HttpScope(method, path, query, "1.1", Headers(pairs), "127.0.0.1:1"), (host,), "R")


def authorization(signed_headers: str, signature: str) -> str:
    """Return the header's text."""
    return (
        f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20130524/us-east-1/s3/aws4_request,"
        f"SignedHeaders={signed_headers},Signature={signature}"
    )


HEADERS = [
    pytest.param(
        "GET",
        "/test.txt",
        "",
        {"range": "bytes=0-9", "x-amz-content-sha256": EMPTY, "x-amz-date": "20130524T000000Z"},
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        id="GET Object",
    ),
    pytest.param(
        "PUT",
        "/test%24file.text",
        "",
        {
            "date": "Fri, 24 May 2013 00:00:00 GMT",
            "x-amz-date": "20130524T000000Z",
            "x-amz-storage-class": "REDUCED_REDUNDANCY",
            "x-amz-content-sha256": (
                "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
            ),
        },
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        id="PUT Object",
    ),
    pytest.param(
        "PUT",
        "/test$file.text",
        "",
        {
            "date": "Fri, 24 May 2013 00:00:00 GMT",
            "x-amz-date": "20130524T000000Z",
            "x-amz-storage-class": "REDUCED_REDUNDANCY",
            "x-amz-content-sha256": (
                "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
            ),
        },
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        id="PUT Object, the path sent without its escape",
    ),
    pytest.param(
        "GET",
        "/",
        "lifecycle",
        {"x-amz-content-sha256": EMPTY, "x-amz-date": "20130524T000000Z"},
        "host;x-amz-content-sha256;x-amz-date",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        id="GET Bucket Lifecycle",
    ),
    pytest.param(
        "GET",
        "/",
        "prefix=J&max-keys=2",
        {"x-amz-content-sha256": EMPTY, "x-amz-date": "20130524T000000Z"},
        "host;x-amz-content-sha256;x-amz-date",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        id="List Objects",
    ),
]


@pytest.mark.parametrize(("method", "path", "query", "headers", "signed", "signature"), HEADERS)
def test_the_header_examples_of_aws_are_accepted(
    method: str, path: str, query: str, headers: dict[str, str], signed: str, signature: str
) -> None:
    given = {**headers, "authorization": authorization(signed, signature)}
    read = request(method, path, query, given)
    claims = claims_of(read)
    assert claims is not None
    seal = verify(read, claims, SECRET, now=NOW)
    assert seal.seed == signature


@pytest.mark.parametrize(("method", "path", "query", "headers", "signed", "signature"), HEADERS)
def test_one_altered_digit_of_a_signature_is_refused(
    method: str, path: str, query: str, headers: dict[str, str], signed: str, signature: str
) -> None:
    altered = ("0" if signature[0] != "0" else "1") + signature[1:]
    given = {**headers, "authorization": authorization(signed, altered)}
    read = request(method, path, query, given)
    claims = claims_of(read)
    assert claims is not None
    with pytest.raises(S3Error) as refused:
        verify(read, claims, SECRET, now=NOW)
    assert refused.value.code == "SignatureDoesNotMatch"


PRESIGNED = (
    "X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
    "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
)


def test_the_presigned_example_of_aws_is_accepted() -> None:
    read = request("GET", "/test.txt", PRESIGNED, {})
    claims = claims_of(read)
    assert claims is not None
    verify(read, claims, SECRET, now=NOW)


async def pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    """Yield a body in pieces."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


def decoded_body(
    body: bytes, kind: str, seal: StreamSigning, *, size: int, decoded: int
) -> chunks.Chunks:
    """Decode a body to its end."""
    source = chunks.Chunks(
        pieces(body, size), encoding=kind, stream_signing=seal, decoded_bytes=decoded
    )

    async def read() -> bytes:
        return b"".join([piece async for piece in source])

    assert asyncio.run(read()) == b"a" * decoded
    return source


CHUNKED = (
    b"10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n"
    + b"a" * 65536
    + b"\r\n400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"
    + b"\r\n"
    + b"a" * 1024
    + b"\r\n0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"
    + b"\r\n\r\n"
)
TRAILED = (
    b"10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n"
    + b"a" * 65536
    + b"\r\n400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"
    + b"\r\n"
    + b"a" * 1024
    + b"\r\n0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"
    + b"\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n"
    + b"x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"
    + b"\r\n\r\n"
)


def stream_signing_of(kind: str, signature: str, trailer: str = "") -> StreamSigning:
    """Verify the request of the chunked examples; return how its chunks are signed."""
    headers = {
        "content-encoding": "aws-chunked",
        "x-amz-content-sha256": kind,
        "x-amz-date": "20130524T000000Z",
        "x-amz-decoded-content-length": "66560",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
    }
    names = "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"
    if trailer:
        headers["x-amz-trailer"] = trailer
        names += "x-amz-storage-class;x-amz-trailer"
    else:
        headers["content-length"] = "66824"
        names = "content-encoding;content-length;" + names.partition(";")[2] + "x-amz-storage-class"
    headers["authorization"] = authorization(names, signature)
    read = request("PUT", "/examplebucket/chunkObject.txt", "", headers, "s3.amazonaws.com")
    claims = claims_of(read)
    assert claims is not None
    return verify(read, claims, SECRET, now=NOW)


@pytest.mark.parametrize("size", [1, 7, 4096, 10**6])
def test_the_chunked_example_of_aws_is_accepted_in_pieces_of_any_size(size: int) -> None:
    seal = stream_signing_of(
        chunks.SIGNED, "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    )
    decoded_body(CHUNKED, chunks.SIGNED, seal, size=size, decoded=66560)


@pytest.mark.parametrize("size", [1, 7, 4096, 10**6])
def test_the_example_with_a_signed_trailer_is_accepted_in_pieces_of_any_size(size: int) -> None:
    seal = stream_signing_of(
        chunks.SIGNED_TRAILER,
        "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
        "x-amz-checksum-crc32c",
    )
    read = decoded_body(TRAILED, chunks.SIGNED_TRAILER, seal, size=size, decoded=66560)
    assert read.trailers == {"x-amz-checksum-crc32c": "sOO8/Q=="}


ALTERED = [
    pytest.param(CHUNKED.replace(b"aaa\r\n400", b"aab\r\n400"), "SignatureDoesNotMatch", id="byte"),
    pytest.param(CHUNKED.replace(b"=b6c6", b"=b6c7"), "SignatureDoesNotMatch", id="last chunk"),
    pytest.param(CHUNKED[:-90], "IncompleteBody", id="without its last chunk"),
    pytest.param(CHUNKED[:60000], "IncompleteBody", id="cut short"),
    pytest.param(CHUNKED + b"GET / HTTP/1.1\r\n", "IncompleteBody", id="with more behind"),
    pytest.param(b"10000\r\n" + CHUNKED[84:], "InvalidChunkSizeError", id="unsigned chunk"),
    pytest.param(b"zz;chunk-signature=1\r\n", "InvalidChunkSizeError", id="no size"),
    pytest.param(b"f" * 4000, "InvalidChunkSizeError", id="endless line"),
]


@pytest.mark.parametrize(("body", "code"), ALTERED)
def test_an_altered_stream_is_refused(body: bytes, code: str) -> None:
    seal = stream_signing_of(
        chunks.SIGNED, "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    )
    with pytest.raises(S3Error) as refused:
        decoded_body(body, chunks.SIGNED, seal, size=5000, decoded=66560)
    assert refused.value.code == code
