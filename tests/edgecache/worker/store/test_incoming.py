"""A file being written is not closed under the thread that writes to it."""

import threading
from pathlib import Path
from typing import BinaryIO, cast

from edgecache.worker.store.incoming import Incoming
from edgecache.worker.store.recovery import open_store
from tests.edgecache.worker.running import name

CONTENT = b"x" * 4096


def test_a_file_is_not_closed_while_a_thread_writes_to_it(tmp_path: Path) -> None:
    store = open_store(tmp_path, 1 << 20)
    incoming = Incoming(store, name(CONTENT), len(CONTENT))
    discarding = threading.Thread(target=incoming.discard)

    class Slow:
        """A file that is discarded during a write."""

        def __init__(self, file: BinaryIO) -> None:
            self._file = file

        def write(self, piece: memoryview) -> int:
            discarding.start()
            # Until it is done, or blocked as it should be.
            discarding.join(timeout=0.2)
            return self._file.write(piece)

        def close(self) -> None:
            self._file.close()

    incoming._file = cast(BinaryIO, Slow(incoming._file))
    incoming.write(CONTENT)
    discarding.join()

    assert list((store.files.folder / "incoming").iterdir()) == []
    assert store._reserved == 0
    store.close()
