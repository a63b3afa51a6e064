"""Files on the brain's machine, workers' included, that are sent after a verification."""

import time
from functools import partial
from typing import Final

import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.fair_share import SHARE_KEY
from edgecache.runtime.threads import FairThreads, QueueShareExhausted
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
SPARE: Final = 1.0
# Files that wait to be verified, half of them of one organization at most; of others it begins when
# they are read again.
WAITING_LIMIT: Final = 256


class LocalFiles:
    """What this brain knows of files that it or nginx sends."""

    def __init__(self) -> None:
        self._verified = VerifiedFiles()
        # Wrong ones stay here, so that they are not hashed at each read.
        self._begun: set[FileState] = set()
        self._tasks = BackgroundTasks()
        self._threads = FairThreads(
            VERIFYING_THREADS, "brain-verifying", spare=SPARE, queue=WAITING_LIMIT
        )

    async def stop(self) -> None:
        await self._tasks.stop()
        self._threads.stop()

    def is_verified(self, sha256: bytes, path: str) -> bool:
        """True if the file has these bytes; if that is not known, it is being verified soon."""
        try:
            state = state_of(path)
        except OSError:
            return False
        return self.knows(sha256, path, state)

    def knows(self, sha256: bytes, path: str, state: FileState) -> bool:
        """Return ``is_verified`` of a file in this state."""
        if self._verified.knows(sha256, state):
            return True
        if state not in self._begun and is_settled(state, now_ns=time.time_ns()):
            if len(self._begun) >= MAX_FILES:
                self._begun.clear()
            self._begun.add(state)
            self._tasks.add(self._verify(sha256, path, state))
        return False

    async def _verify(self, sha256: bytes, path: str, state: FileState) -> None:
        # In the share of an organization, not of its bucket, because there are few threads.
        work = partial(self._verified.verify_path, sha256, path)
        try:
            found = await self._threads.run(SHARE_KEY.get()[:1], work)
        except (QueueShareExhausted, OSError):
            # It begins again when the file is read again.
            self._begun.discard(state)
            return
        if found is None:
            log.error("worker_file_wrong", sha256=sha256.hex())
        else:
            self._begun.discard(state)
