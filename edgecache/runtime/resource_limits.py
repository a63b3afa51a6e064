"""How many open files, processors and how much memory this process may use."""

import contextlib
import os
import resource
from functools import cache
from pathlib import Path
from typing import Final

FILES_WANTED: Final = 65_536
# Memory for one client: bytes that it has sent, and bytes that it has not read yet.
CONNECTION_BYTES: Final = 2**20
MIN_CONNECTIONS: Final = 64
MAX_CONNECTIONS: Final = 16_384
# Memory limits of a container, by cgroups of version 2 and 1; they may be below the machine's.
CONTAINER_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


# cpu.max of version 2: microseconds of processors, or "max", in this many microseconds.
CONTAINER_PROCESSORS: Final = Path("/sys/fs/cgroup/cpu.max")


class _Sharing:
    """How many processes of this program share the machine's memory."""

    processes = 1


def share_memory(processes: int) -> None:
    """Note that this many processes share the memory, before anything was asked."""
    _Sharing.processes = processes


def processors() -> int:
    """Return how many processors this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        used, _, period = CONTAINER_PROCESSORS.read_text(encoding="ascii").partition(" ")
        count = min(count, int(used) // int(period))
    return max(count, 1)


@cache
def files_allowed() -> int:
    """Return how many files this process may have open, after raising the limit to its maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return FILES_WANTED if soft == resource.RLIM_INFINITY else min(soft, FILES_WANTED)


@cache
def connections_allowed() -> int:
    """Return how many clients a server accepts: each needs one file.

    Two fifths of the open files: half as many requests to origins take up to three files each.
    """
    by_machine = min(files_allowed() * 2 // 5, memory_bytes() // CONNECTION_BYTES)
    return min(max(by_machine, MIN_CONNECTIONS), MAX_CONNECTIONS)


@cache
def memory_bytes() -> int:
    """Return this process's part of the memory of the machine, or of its container."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text(encoding="ascii")))
    return min(found) // _Sharing.processes
