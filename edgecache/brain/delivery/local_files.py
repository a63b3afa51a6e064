"""Files on this machine, the brain's own and workers', that are sent after a verification.

Large bodies of the built-in origin's objects and of cached copies are sent by sendfile: the kernel
sends them at a fraction of what a worker's bytes cost that pass through Python.
"""

import asyncio
import os
import time
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.stores.managed import LocalBodies
from edgecache.http.files import FileBody
from edgecache.runtime.bounded_cache import BoundedCache
from edgecache.runtime.hot_cache import OBJECT_LIMIT_BYTES
from edgecache.runtime.verified_files import (
    MAX_FILES,
    FileState,
    VerifiedFiles,
    is_settled,
    state_of,
)

log = structlog.get_logger(__name__)

# An organization verifies one file at a time, however large; the other thread is for others.
VERIFYING_THREADS: Final = 2
# Organizations that verify a file or wait for it.
MAX_VERIFYING: Final = 256

# Smaller ones that are popular are in memory.
MIN_SENDFILE_BYTES: Final = OBJECT_LIMIT_BYTES
MAX_RECENT_BLOBS: Final = 10_000

_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

# A path, its open file, and the state of that.
_Opened = tuple[str, int, FileState]
# An environment and a hash.
_Key = tuple[EnvironmentKey, bytes]


class LocalFiles:
    """What this brain knows of files that it sends."""

    def __init__(self) -> None:
        self._verified = VerifiedFiles()
        # Wrong ones stay here, so that they are not hashed at each read.
        self._begun: BoundedCache[FileState, bool] = BoundedCache(MAX_FILES)
        self._tasks = BackgroundTasks()
        self._threads = ThreadPoolExecutor(VERIFYING_THREADS, "brain-verifying")
        self._verifying: set[Hashable] = set()

    async def stop(self) -> None:
        await self._tasks.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def knows(self, sha256: bytes, path: str, state: FileState) -> bool:
        """True if the file has these bytes; if that is not known, it is verified soon.

        While another one of the organization is, that begins when the file is read again.
        """
        if self._verified.knows(sha256, state):
            return True
        if state not in self._begun and is_settled(state, now_ns=time.time_ns()):
            owner = SHARE_KEY.get()[0]
            if owner not in self._verifying and len(self._verifying) < MAX_VERIFYING:
                self._verifying.add(owner)
                self._begun.put(state, True)
                self._tasks.add(self._verify(sha256, path, state, owner))
        return False

    async def _verify(self, sha256: bytes, path: str, state: FileState, owner: Hashable) -> None:
        loop = asyncio.get_running_loop()
        try:
            work = partial(self._verified.verify_path, sha256, path)
            found = await loop.run_in_executor(self._threads, work)
        except OSError:
            # It begins again when the file is read again.
            self._begun.pop(state)
            return
        finally:
            self._verifying.discard(owner)
        if found is None:
            log.error("worker_file_wrong", sha256=sha256.hex())
        else:
            self._begun.pop(state)


class OwnFiles:
    """Files of the managed store and copies, as far as they are on this machine."""

    def __init__(self, bodies: LocalBodies, files: LocalFiles) -> None:
        self._bodies = bodies
        self._files = files
        self._threads = bodies.threads
        # No name is used for other bytes later, so what is here is right as long as it exists.
        self._sent: BoundedCache[_Key, Path] = BoundedCache(MAX_RECENT_BLOBS)

    async def open(self, delivery: DeliveryPlan) -> FileBody | None:
        """Return the bytes of a delivery, None if they are few or no verified file has them.

        A file that is not verified yet is verified in the background.
        """
        sha256, (start, length) = delivery.sha256, delivery.span
        if length <= MIN_SENDFILE_BYTES or not sha256 or delivery.is_verified:
            return None
        # The kernel has the location of a recently sent file in memory; others may take a disk
        # access.
        known = self._sent.get(_key(delivery))
        opened = None if known is None else _open(known)
        if opened is None:
            try:
                path = await self._find(delivery)
            except DatabaseUnavailable:
                return None
            opened = await self._threads.owned(SHARE_KEY.get(), partial(_open, path), _close)
        if opened is None:
            self._sent.pop(_key(delivery))
            return None
        name, descriptor, state = opened
        if not self._files.knows(sha256, name, state):
            os.close(descriptor)
            return None
        self._sent.put(_key(delivery), Path(name))
        return FileBody(
            descriptor,
            start,
            length,
            self._threads,
            SHARE_KEY.get(),
            lambda: state_of(descriptor) == state,
        )

    async def _find(self, delivery: DeliveryPlan) -> Path:
        if not delivery.is_stored:
            return self._bodies.copy_of(delivery.sha256)
        found = await self._bodies.files(delivery.tenant, [delivery.sha256])
        return found[delivery.sha256]


def _key(delivery: DeliveryPlan) -> _Key:
    return delivery.tenant, delivery.sha256


def _open(path: Path) -> _Opened | None:
    """Open a file, if there is one. It blocks."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    return str(path), descriptor, state_of(descriptor)


def _close(opened: _Opened | None) -> None:
    """Close a file that was opened for a client that has disconnected."""
    if opened is not None:
        os.close(opened[1])
