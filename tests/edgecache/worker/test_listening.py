"""The worker's port: looking for its socket leaves nothing open."""

import os
import socket
from pathlib import Path

from edgecache.worker.listening import _harden


def test_looking_for_the_socket_that_listens_leaves_no_file_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, (tmp_path / "file").open("w"):
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths

        assert _harden(server.getsockname()[1], 1000)

        assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1000
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - numbers, not paths
