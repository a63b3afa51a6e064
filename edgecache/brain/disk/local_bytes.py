"""Verified bytes from a brain's own files; a wrong copy is deleted."""

from collections.abc import AsyncIterator
from functools import partial

import structlog

from edgecache.brain.core.errors import OriginChanged
from edgecache.brain.core.values import BlobManifest
from edgecache.brain.delivery.plan import Span
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.disk.digests import verified

log = structlog.get_logger(__name__)


async def local_bytes(
    staging: DataDirectory, manifest: BlobManifest, span: Span
) -> AsyncIterator[bytes]:
    """Yield a span of a blob until a byte is wrong or missing; maybe nothing."""
    path = await staging.local(manifest.sha256)
    if path is None:
        return
    try:
        async for piece in verified(partial(staging.read, path), manifest, span):
            yield piece
    except (OriginChanged, OSError):
        log.exception("own_bytes_wrong", sha256=manifest.sha256.hex())
        # The built-in origin's file stays: it may be the only one with the other bytes.
        if path == staging.blob_path(manifest.sha256):
            await staging.run(staging.unlink_copy, path)
