"""What this machine allows a process: open files and memory."""

import contextlib
import os
import resource
from functools import cache
from pathlib import Path
from typing import Final

FILES_WANTED: Final = 65_536
# Of one client: what it has sent and what it has not taken yet.
CONNECTION_BYTES: Final = 2**20
CONNECTIONS_LEAST: Final = 64
CONNECTIONS_MOST: Final = 16_384
# Of a container, which may have less than its machine: of version 2, and of version 1.
CONTAINER_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@cache
def files_allowed() -> int:
    """Return how many files this process may have open, after raising that as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return FILES_WANTED if soft == resource.RLIM_INFINITY else min(soft, FILES_WANTED)


@cache
def connections_allowed() -> int:
    """Return how many clients a server takes: each has a file, and may need another one.

    That leaves a fifth of the open files for everything else.
    """
    by_machine = min(files_allowed() * 2 // 5, memory_bytes() // CONNECTION_BYTES)
    return min(max(by_machine, CONNECTIONS_LEAST), CONNECTIONS_MOST)


@cache
def memory_bytes() -> int:
    """Return the memory of the machine, or of the container that this runs in."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text(encoding="ascii")))
    return min(found)
