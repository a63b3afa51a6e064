"""Bodies of requests: within their limits, unframed, checked against everything said of them."""

import hmac
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from edgecache.brain.s3 import checksums
from edgecache.brain.s3.auth.sigv4.chunks import STREAMING, Chunks
from edgecache.brain.s3.auth.sigv4.claims import UNSIGNED
from edgecache.brain.s3.calls import Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.storage.digests import Digests
from edgecache.brain.values import Manifest, StagedFile
from edgecache.http.exchange import BodyTimeout

UPLOAD_LIMIT_BYTES: Final = 5 * 2**30
XML_LIMIT_BYTES: Final = 2**22
_DIGITS: Final = 19
IN_MANIFEST: Final = frozenset(("sha256", "crc32"))


@dataclass(frozen=True, slots=True)
class Received:
    """A body on disk, right in everything that was said of it. checksums: to be kept."""

    staged: StagedFile
    checksums: Mapping[str, str]


async def receive(call: Call, *, keep: str = "") -> Received:
    """Take an upload's body to the brain's disk.

    keep: a checksum to reckon whatever the request names. Nothing is left behind when it fails.
    Raises S3Error: MissingContentLength, EntityTooLarge, IncompleteBody, BadDigest,
    XAmzContentSHA256Mismatch, SignatureDoesNotMatch, …; StorageFull.
    """
    request = call.request
    length = body_length(call)
    if length > UPLOAD_LIMIT_BYTES:
        size = {"ProposedSize": str(length), "MaxSizeAllowed": str(UPLOAD_LIMIT_BYTES)}
        raise S3Error("EntityTooLarge", extra=size)
    claims = checksums.claims_of(request)
    reckoning = Reckoning(claims.name or keep or checksums.DEFAULT, keep)
    source = _source(call, length)
    receiver = call.parts.staging.receive()
    try:
        async for piece in source:
            reckoning.update(piece)
            await receiver.write(piece)
        if receiver.size != length:
            _incomplete()
        staged = await receiver.finish()
        reckoned = reckoning.of(staged.manifest)
        _check(call, staged.manifest, claims, _claimed(claims, source), reckoned)
    except BaseException:
        await receiver.discard()
        raise
    return Received(staged, {**reckoned, "type": checksums.FULL})


async def read_xml(call: Call, *, needs_digest: bool = False) -> bytes:
    """Give a small body whole, checked as ``receive`` checks.

    needs_digest: a Content-MD5 or a checksum must have been sent (DeleteObjects).
    Raises S3Error: MaxMessageLengthExceeded, MissingRequestBodyError, BadDigest, ….
    """
    request = call.request
    length = body_length(call)
    if length > XML_LIMIT_BYTES:
        raise S3Error("MaxMessageLengthExceeded")
    claims = checksums.claims_of(request)
    source = _source(call, length)
    body = b"".join([piece async for piece in source])
    if len(body) != length:
        _incomplete()
    claimed = _claimed(claims, source)
    if needs_digest and claims.md5 is None and not claimed:
        raise S3Error("InvalidRequest", "Missing required header for this request: Content-MD5")
    digests = Digests()
    digests.update(body)
    manifest = digests.manifest()
    reckoning = Reckoning(*claimed)
    reckoning.update(body)
    _check(call, manifest, claims, claimed, reckoning.of(manifest))
    if not body:
        raise S3Error("MissingRequestBodyError")
    return body


def body_length(call: Call) -> int:
    """Give the size of the body without its frames.

    Raises S3Error: MissingContentLength, InvalidArgument.
    """
    request = call.request
    is_framed = call.identity is not None and call.identity.payload_hash in STREAMING
    name = "x-amz-decoded-content-length" if is_framed else "content-length"
    text = request.header(name)
    if not text:
        if name == "content-length" and "transfer-encoding" not in request.headers:
            # RFC 9112 §6.3: without either there is no body.
            return 0
        raise S3Error("MissingContentLength")
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise S3Error("InvalidArgument", f"{name} is not a length.")
    return int(text)


def _source(call: Call, length: int) -> AsyncIterator[bytes] | Chunks:
    pieces = _pieces(call)
    identity = call.identity
    if identity is not None and identity.payload_hash in STREAMING:
        return Chunks(pieces, kind=identity.payload_hash, seal=identity.seal, decoded_bytes=length)
    return pieces


async def _pieces(call: Call) -> AsyncIterator[bytes]:
    try:
        async for piece in call.exchange:
            yield piece
    except BodyTimeout:
        raise S3Error("RequestTimeout") from None


class Reckoning:
    """The checksums that a body's manifest will not hold anyway."""

    def __init__(self, *names: str) -> None:
        self._names = [name for name in dict.fromkeys(names) if name]
        self._running = {
            name: checksums.running(name) for name in self._names if name not in IN_MANIFEST
        }

    def update(self, data: bytes) -> None:
        """Take the next bytes."""
        for running in self._running.values():
            running.update(data)

    def of(self, manifest: Manifest) -> dict[str, str]:
        """Give all of them, in base64."""
        return {
            name: checksums.text(self._running[name].digest())
            if name in self._running
            else checksums.of_manifest(name, manifest)
            for name in self._names
        }


def _claimed(claims: checksums.Claims, source: object) -> dict[str, str]:
    """Give the checksums that the client sent, before the body or behind it."""
    if not isinstance(source, Chunks) or not claims.trailing:
        return dict(claims.values)
    value = source.trailers.get(checksums.HEADER + claims.trailing, "")
    if not value:
        raise S3Error("MalformedTrailerError")
    checksums.check_form(claims.trailing, value)
    return {**claims.values, claims.trailing: value}


def _check(
    call: Call,
    manifest: Manifest,
    claims: checksums.Claims,
    claimed: Mapping[str, str],
    reckoned: Mapping[str, str],
) -> None:
    _check_payload(call, manifest)
    if claims.md5 is not None and not hmac.compare_digest(manifest.md5, claims.md5):
        raise S3Error("BadDigest", "The Content-MD5 you specified did not match what we received.")
    for name, value in claimed.items():
        if not hmac.compare_digest(value.encode(), reckoned[name].encode()):
            raise S3Error(
                "BadDigest",
                f"The {name.upper()} you specified did not match the calculated checksum.",
            )


def _check_payload(call: Call, manifest: Manifest) -> None:
    payload_hash = call.identity.payload_hash if call.identity is not None else UNSIGNED
    if payload_hash == UNSIGNED or payload_hash in STREAMING:
        return
    if not hmac.compare_digest(manifest.sha256, bytes.fromhex(payload_hash)):
        raise S3Error(
            "XAmzContentSHA256Mismatch",
            extra={
                "ClientComputedContentSHA256": payload_hash,
                "S3ComputedContentSHA256": manifest.sha256.hex(),
            },
        )


def _incomplete() -> NoReturn:
    raise S3Error("IncompleteBody")
