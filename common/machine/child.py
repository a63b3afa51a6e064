"""Steps between fork and exec: hand over sockets, drop root, end with the parent, exec.

Run by file name with `python -I -S`, so it uses the standard library only and nothing of this
project. It is a wrapper because `preexec_fn` runs Python between fork and exec, which can deadlock
in a program with threads.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import sys
from typing import Any, Final

PR_SET_PDEATHSIG: Final = 1
PARENT_GONE: Final = 125
CANNOT_EXEC: Final = 126
FIRST_SOCKET: Final = 3


def leave_root(uid: int, gid: int) -> None:
    """Switch to the given user permanently, without supplementary groups."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def die_with(parent: int, death_signal: int) -> None:
    """Request a signal from the kernel when the parent dies; exit if it is dead already.

    Comes after the change of user, which clears the request. The kernel watches the *thread*
    that forked, so parents fork from a thread that lives as long as they do.
    Source: prctl(2), PR_SET_PDEATHSIG.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(PARENT_GONE)


def restore_signals() -> None:
    """Undo what survives an exec: Python ignores SIGPIPE, and a parent may block signals."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def hand_over(sockets: list[int]) -> None:
    """Give the command listening sockets as systemd does. Source: sd_listen_fds(3).

    sockets: inherited descriptors; the command has them as 3, 4, …
    """
    # Out of the way first: one may have a number that another one gets.
    above = FIRST_SOCKET + len(sockets)
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above) for number in sockets]
    for number in sockets:
        os.close(number)
    for place, number in enumerate(moved):
        os.dup2(number, FIRST_SOCKET + place)
    os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(sockets))}


def become(options: dict[str, Any], command: list[str]) -> None:
    """Replace this process by the command; only returns by an exception."""
    if options["sockets"]:
        hand_over(options["sockets"])
    if options["umask"] is not None:
        os.umask(options["umask"])
    if options["address_space_bytes"] is not None:
        limit = options["address_space_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if options["uid"] is not None:
        leave_root(options["uid"], options["gid"])
    restore_signals()
    die_with(options["parent"], options["death_signal"])
    os.execvp(command[0], command)  # noqa: S606 - the parent's own command, no shell wanted


if __name__ == "__main__":
    try:
        become(json.loads(sys.argv[1]), sys.argv[2:])
    except OSError as error:
        sys.stderr.write(f"{sys.argv[2]}: {error.strerror}\n")
        sys.exit(CANNOT_EXEC)
