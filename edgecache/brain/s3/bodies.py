"""Bodies of requests: limited, decoded, and checked against all digests that the client sent."""

import hmac
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NoReturn, TypeVar

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.sigv4.chunks import STREAMING, Chunks
from edgecache.brain.aws.sigv4.verification import UNSIGNED
from edgecache.brain.core.values import BlobManifest, StagedFile
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.s3.context import RequestContext
from edgecache.http.exchange import BodyTimeout

Body = TypeVar("Body")

UPLOAD_LIMIT_BYTES: Final = 5 * 2**30
XML_LIMIT_BYTES: Final = 2**22
_DIGITS: Final = 19
# Hashing more would delay other requests for longer than passing it to a thread.
IN_PLACE_BYTES: Final = 2**17
IN_MANIFEST: Final = frozenset(("sha256", "crc32"))


@dataclass(frozen=True, slots=True)
class ReceivedBody(Generic[Body]):
    """A verified body, on disk or in memory. checksums: to be stored with the object."""

    body: Body
    checksums: Mapping[str, str]


async def buffer(context: RequestContext) -> ReceivedBody[BufferedBody] | None:
    """Receive a small upload's body into memory; None if it must be received into a file.

    On failure nothing is stored. Raises as ``receive`` does.
    """
    length = body_length(context)
    release = context.dependencies.data_directory.reserve(context.tenant.organization_id, length)
    if release is None:
        return None
    try:
        declared = checksums.declared_digests(context.request)
        source = _source(context, length)
        data = await _whole(source, length, is_in_form=context.request.form is not None)
        name = declared.name or checksums.DEFAULT
        if length > IN_PLACE_BYTES:
            manifest, computed = await context.dependencies.data_directory.run(_digests, data, name)
        else:
            manifest, computed = _digests(data, name)
        _check(context, manifest, declared, _client_checksums(declared, source), computed)
    except BaseException:
        release()
        raise
    body = BufferedBody(data, manifest, release)
    return ReceivedBody(body, {**computed, "type": checksums.FULL})


def _digests(data: bytes, *names: str) -> tuple[BlobManifest, dict[str, str]]:
    """Return the manifest of a body, and the checksums of these names."""
    manifest = manifest_of(data)
    running = BodyChecksums(*names)
    running.update(data)
    return manifest, running.values(manifest)


async def _whole(
    source: AsyncIterator[bytes] | Chunks, length: int, *, is_in_form: bool = False
) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in source:
        size += len(piece)
        if size > length:
            break
        pieces.append(piece)
    if size != length and not is_in_form:
        _incomplete()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def receive(context: RequestContext, *, keep: str = "") -> ReceivedBody[StagedFile]:
    """Write an upload's body to the brain's disk.

    keep: a checksum to compute in addition to the request's. On failure nothing is stored.

    Raises S3Error: MissingContentLength, EntityTooLarge, IncompleteBody, BadDigest,
    XAmzContentSHA256Mismatch, SignatureDoesNotMatch, …; StorageFull.
    """
    request = context.request
    length = body_length(context)
    if length > UPLOAD_LIMIT_BYTES:
        size = {"ProposedSize": str(length), "MaxSizeAllowed": str(UPLOAD_LIMIT_BYTES)}
        raise S3Error("EntityTooLarge", extra=size)
    declared = checksums.declared_digests(request)
    running = BodyChecksums(declared.name or keep or checksums.DEFAULT, keep)
    source = _source(context, length)
    data_directory = context.dependencies.data_directory
    staged = await data_directory.take(running.over(aiter(source)))
    try:
        if staged.manifest.size != length and request.form is None:
            _incomplete()
        computed = running.values(staged.manifest)
        _check(context, staged.manifest, declared, _client_checksums(declared, source), computed)
    except BaseException:
        await data_directory.discard(staged)
        raise
    return ReceivedBody(staged, {**computed, "type": checksums.FULL})


async def read_xml(
    context: RequestContext, *, needs_digest: bool = False, has_own_checksum: bool = True
) -> bytes:
    """Return a small body, checked as ``receive`` does.

    needs_digest: the client must send a Content-MD5 or a checksum (DeleteObjects).
    has_own_checksum: False if a checksum in the headers is not the body's but the object's.
    Raises S3Error: MaxMessageLengthExceeded, BadDigest, …; Overloaded.
    """
    request = context.request
    length = body_length(context)
    if length > XML_LIMIT_BYTES:
        raise S3Error("MaxMessageLengthExceeded")
    context.reserve_xml(length)
    if has_own_checksum:
        declared = checksums.declared_digests(request)
    else:
        declared = checksums.DeclaredDigests({}, "", "", checksums.content_md5(request))
    source = _source(context, length)
    body = await _whole(source, length)
    claimed = _client_checksums(declared, source)
    if needs_digest and declared.md5 is None and not claimed:
        raise S3Error("InvalidRequest", "Missing required header for this request: Content-MD5")
    if length > IN_PLACE_BYTES:
        manifest, computed = await context.dependencies.data_directory.run(_digests, body, *claimed)
    else:
        manifest, computed = _digests(body, *claimed)
    _check(context, manifest, declared, claimed, computed)
    return body


def body_length(context: RequestContext) -> int:
    """Return the size of the decoded body; of a form, which is longer than its file.

    Raises S3Error: MissingContentLength, InvalidArgument.
    """
    request = context.request
    is_chunked = context.identity is not None and context.identity.payload_hash in STREAMING
    name = "x-amz-decoded-content-length" if is_chunked else "content-length"
    text = request.header(name)
    if not text:
        if name == "content-length" and "transfer-encoding" not in request.headers:
            # RFC 9112 §6.3: a request without either has no body.
            return 0
        raise S3Error("MissingContentLength")
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise S3Error("InvalidArgument", f"{name} is not a length.")
    return int(text)


def _source(context: RequestContext, length: int) -> AsyncIterator[bytes] | Chunks:
    pieces = _pieces(context)
    identity = context.identity
    if identity is not None and identity.payload_hash in STREAMING:
        return Chunks(
            pieces,
            encoding=identity.payload_hash,
            stream_signing=identity.stream_signing,
            decoded_bytes=length,
        )
    return pieces


async def _pieces(context: RequestContext) -> AsyncIterator[bytes]:
    form = context.request.form
    try:
        async for piece in context.exchange if form is None else form:
            yield piece
    except BodyTimeout:
        raise S3Error("RequestTimeout") from None


class BodyChecksums:
    """Checksums of a body; those that its manifest contains anyway are not computed twice."""

    def __init__(self, *names: str) -> None:
        self._names = [name for name in dict.fromkeys(names) if name]
        self._running = {
            name: checksums.new_checksum(name) for name in self._names if name not in IN_MANIFEST
        }

    async def over(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield a body's pieces, and add them."""
        async for piece in body:
            self.update(piece)
            yield piece

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        for running in self._running.values():
            running.update(data)

    def values(self, manifest: BlobManifest) -> dict[str, str]:
        return {
            name: checksums.encode(self._running[name].digest())
            if name in self._running
            else checksums.from_digests(name, manifest)
            for name in self._names
        }


def _client_checksums(declared: checksums.DeclaredDigests, source: object) -> dict[str, str]:
    """Return the checksums that the client sent, in headers or in the trailer.

    Raises S3Error: MalformedTrailerError, InvalidRequest.
    """
    if isinstance(source, Chunks):
        _check_trailers(source.trailers, declared)
    if not declared.trailing:
        return dict(declared.values)
    if not isinstance(source, Chunks):
        raise S3Error("InvalidRequest", "A body without aws-chunked has no trailer.")
    value = source.trailers.get(checksums.HEADER + declared.trailing, "")
    if not value:
        raise S3Error("MalformedTrailerError")
    checksums.check_format(declared.trailing, value)
    return {**declared.values, declared.trailing: value}


def _check_trailers(trailers: Mapping[str, str], declared: checksums.DeclaredDigests) -> None:
    """Raise S3Error MalformedTrailerError for a trailer that x-amz-trailer does not announce."""
    announced = checksums.HEADER + declared.trailing if declared.trailing else ""
    for name in trailers:
        if name != announced:
            raise S3Error("MalformedTrailerError", f"x-amz-trailer does not announce {name[:100]}.")


def _check(
    context: RequestContext,
    manifest: BlobManifest,
    declared: checksums.DeclaredDigests,
    claimed: Mapping[str, str],
    computed: Mapping[str, str],
) -> None:
    _check_payload(context, manifest)
    if declared.md5 is not None and not hmac.compare_digest(manifest.md5, declared.md5):
        raise S3Error("BadDigest", "The Content-MD5 you specified did not match what we received.")
    for name, value in claimed.items():
        if not hmac.compare_digest(value.encode(), computed[name].encode()):
            raise S3Error(
                "BadDigest",
                f"The {name.upper()} you specified did not match the calculated checksum.",
            )


def _check_payload(context: RequestContext, manifest: BlobManifest) -> None:
    payload_hash = context.identity.payload_hash if context.identity is not None else UNSIGNED
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
