"""Ports for servers that need to know their port before they start."""

import itertools
import os
import secrets
import socket
from collections.abc import Iterator
from typing import Final

# Below the range that a system takes "any port" and those of outgoing connections from: one of
# that range can be taken by another process before the server binds it.
LOWEST: Final = 10_000
HIGHEST: Final = 32_767


def free_port() -> int:
    """Return a port that is free now and that no other test gets for long."""
    return next(port for port in _ports if _is_free(port))


def accepts(port: int) -> bool:
    """True if a server accepts connections on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def _share() -> Iterator[int]:
    """Cycle through this process's ports from a random start: other runs have the same shares."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = (HIGHEST + 1 - LOWEST) // count
    start = secrets.randbelow(size)
    first = LOWEST + number * size
    return itertools.cycle([*range(first + start, first + size), *range(first, first + start)])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


_ports = _share()
