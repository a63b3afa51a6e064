"""gunicorn's threaded worker with one computing thread, and servers that end without loss.

SIGUSR2 makes gunicorn start a second server with the current code on the same sockets. With
gunicorn alone an administrator has to end the first one; here the second one does so when it is
ready. If it does not start, the first one continues.
"""

import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]  # it has no types

from common.machine import systemd
from common.web import server_end
from common.web.compute_slots import ComputeSlots
from edgecache.runtime.listening import refuse_connections

# Set by gunicorn for a server that was started by another one, until that one has ended.
FORMER: Final = "GUNICORN_PID"


class Worker(ThreadWorker):  # type: ignore[misc]  # untyped library
    """A worker process that loses no connection when it ends."""

    sockets: list[Any]

    def get_thread_pool(self) -> ComputeSlots:
        """Return the threads that answer requests."""
        return ComputeSlots(self.cfg.threads)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting; a process that ends stops listening."""
        super().set_accept_enabled(enabled and self.alive)
        if not self.alive:
            self._stop_listening()

    def _stop_listening(self) -> None:
        """Accept what the kernel has queued, and close the sockets before the requests end.

        The kernel would queue further connections, and reset them when the last process closes.
        """
        for listener in self.sockets:
            listener.setblocking(False)
            queue = select.poll()
            queue.register(listener, select.POLLIN)
            # A Unix socket that refuses is always readable; its accept fails when none is left.
            with suppress(OSError):
                while queue.poll(0):
                    self.accept(listener)
            listener.close()
        self.sockets = []


def take_over(server_pid: int) -> None:
    """End the server that started this one, if any, and report the new process to systemd."""
    former = int(os.environ.get(FORMER, "0"))
    # The process may have ended and its id may have been reused.
    if former and former == _parent_of(server_pid):
        systemd.notify(f"MAINPID={server_pid}")
        os.kill(former, signal.SIGTERM)


def refuse_before_stop(server: Any) -> None:
    """Have gunicorn's server refuse new connections before it stops its workers.

    Not while another server has its sockets: one that takes over, one before it, or systemd.
    """
    stop = server.stop

    def refuse_and_stop(*args: Any, **options: Any) -> None:
        if server.reexec_pid == server.master_pid == 0 and not server.systemd:
            server_end.begin()
            for listener in server.LISTENERS:
                refuse_connections(listener.sock)
        stop(*args, **options)

    server.stop = refuse_and_stop


def _parent_of(pid: int) -> int:
    # After the program's name in brackets, which may contain blanks: state, parent.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
