"""Large bodies from the brain's own files: by sendfile, once their file was verified.

The built-in origin's objects and cached copies are on the brain's disk. The kernel sends them at a
fraction of what a worker's bytes cost that pass through Python.
"""

import os
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import Final

from edgecache.brain.core.fair_share import SHARE_KEY
from edgecache.brain.delivery.local_files import LocalFiles
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.http.files import FileBody
from edgecache.runtime.hot_cache import OBJECT_LIMIT_BYTES
from edgecache.runtime.threads import FairThreads
from edgecache.runtime.verified_files import FileState, state_of

# Smaller ones that are popular are in memory.
MIN_BYTES: Final = OBJECT_LIMIT_BYTES
SENDING_THREADS: Final = 4
MAX_RECENT_BLOBS: Final = 10_000

_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

# A path, its open file, and the state of that.
_Opened = tuple[str, int, FileState]


class OwnFiles:
    def __init__(self, staging: DataDirectory, files: LocalFiles) -> None:
        self._staging = staging
        self._files = files
        self._threads = FairThreads(SENDING_THREADS, "brain-sending")
        self._sent: OrderedDict[bytes, None] = OrderedDict()

    def has_sent(self, sha256: bytes) -> bool:
        """True if these bytes were recently sent from a file."""
        return sha256 in self._sent

    async def open(self, delivery: DeliveryPlan) -> FileBody | None:
        """Return the bytes of a delivery, None if they are few or no verified file has them.

        A file that is not verified yet is verified in the background.
        """
        sha256, (start, length) = delivery.sha256, delivery.span
        if length <= MIN_BYTES or not sha256 or delivery.is_verified:
            return None
        paths = (self._staging.origin_path(sha256), self._staging.blob_path(sha256))
        # The kernel has the location of a recently sent file in memory; others may take a disk
        # access.
        if sha256 in self._sent:
            opened = _open(*paths)
        else:
            opened = await self._threads.owned(SHARE_KEY.get(), partial(_open, *paths), _close)
        if opened is None:
            return None
        path, descriptor, state = opened
        if not self._files.knows(sha256, path, state):
            os.close(descriptor)
            return None
        self._note(sha256)
        return FileBody(
            descriptor,
            start,
            length,
            self._threads,
            SHARE_KEY.get(),
            lambda: state_of(descriptor) == state,
        )

    def _note(self, sha256: bytes) -> None:
        self._sent[sha256] = None
        if len(self._sent) > MAX_RECENT_BLOBS:
            self._sent.popitem(last=False)


def _open(*paths: Path) -> _Opened | None:
    """Open the first of these files that there is. It blocks."""
    for path in paths:
        try:
            descriptor = os.open(path, _FLAGS)
        except OSError:
            continue
        return str(path), descriptor, state_of(descriptor)
    return None


def _close(opened: _Opened | None) -> None:
    """Close a file that was opened for a client that has disconnected."""
    if opened is not None:
        os.close(opened[1])
