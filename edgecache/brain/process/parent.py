"""The parent of a brain's processes: it binds the ports, starts them, and replaces one that ends.

It serves nothing itself and has no event loop, so that it can fork at any time. SIGTERM and SIGINT
end all processes; SIGUSR2 starts a brain that takes over (``takeover``).
"""

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

import structlog

from edgecache.brain.conf import BrainSettings
from edgecache.brain.process.place import Place
from edgecache.brain.process.process import HANDED_OVER_S, STOP, STOP_HANDED_OVER, STOP_TIMEOUT_S
from edgecache.brain.process.signals import SignalInbox
from edgecache.brain.process.sockets import Sockets, open_sockets
from edgecache.brain.process.takeover import Successor, inherited, report_ready
from edgecache.brain.siblings.mailboxes import Mailboxes
from edgecache.brain.siblings.shared_memory import SharedMemory
from edgecache.http.machine import share_memory
from platform_site.embedded.supervisor.child import die_with

log = structlog.get_logger(__name__)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGCHLD)
# Until a process that has ended is replaced: one that cannot run is not to keep the machine busy.
RESTART_S: Final = 1.0
# What a process needs to stop beyond the time for its requests.
STOP_PARTS_S: Final = 15.0


Serve = Callable[[Place], int]


class Parent:
    """The processes of one brain."""

    def __init__(self, settings: BrainSettings, serve: Serve) -> None:
        """serve: runs a process to its end, and returns its exit status."""
        self._settings = settings
        self._serve = serve
        self._count = settings.processes.count
        self._memory = SharedMemory(self._count)
        self._mailboxes = Mailboxes(self._count)
        self._successor = Successor()
        self._sockets: Sockets = {}
        # Each process that serves writes the number of its place.
        self._ready_read, self._ready_write = os.pipe()
        self._ready: set[int] = set()
        self._has_started = False
        # Places by process.
        self._running: dict[int, int] = {}
        # When a place gets its next process.
        self._due: dict[int, float] = {}

    def run(self) -> int:
        """Run the processes until a signal; return the exit status.

        Raises PortTakenError, StartError.
        """
        self._sockets = open_sockets(self._settings, inherited())
        share_memory(self._count)
        # What is there now is the same in all processes; a collection that touches it copies it.
        gc.collect()
        gc.freeze()
        with SignalInbox(SIGNALS) as inbox:
            # The others follow when it serves: what keeps one from it is reported once.
            self._fork(0, inbox)
            while (status := self._step(inbox)) is None:
                pass
            return self._stop(inbox) or status

    def _step(self, inbox: SignalInbox) -> int | None:
        """Wait for the next event and act on it; return the exit status if it is the last one."""
        wait_s = max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None
        ready, signals = inbox.wait(self._ready_read, wait_s)
        self._ready.update(ready)
        if signal.SIGTERM in signals or signal.SIGINT in signals:
            return 0
        if signal.SIGUSR2 in signals:
            self._successor.start(self._sockets)
        self._successor.note_end()
        if self._note_ended() and not self._has_started:
            return 1
        if self._ready and not self._has_started:
            self._go_on_starting(inbox)
        for place in [place for place, at in self._due.items() if at <= time.monotonic()]:
            del self._due[place]
            self._fork(place, inbox)
        return None

    def _go_on_starting(self, inbox: SignalInbox) -> None:
        """Start the processes beside the first one, and report when all of them serve."""
        if len(self._running) < self._count:
            for place in range(1, self._count):
                self._fork(place, inbox)
        if len(self._ready) == self._count:
            self._has_started = True
            log.info("brain_started", processes=self._count)
            report_ready()

    def _note_ended(self) -> bool:
        """Note which processes have ended, to be replaced; True if any has."""
        statuses = {pid: _status_of(pid) for pid in self._running}
        ended = {pid: status for pid, status in statuses.items() if status is not None}
        for pid, status in ended.items():
            place = self._running.pop(pid)
            # The others would leave connections to it.
            self._memory.close(place)
            self._due[place] = time.monotonic() + RESTART_S
            log.error("brain_process_ended", place=place, status=status)
        return bool(ended)

    def _fork(self, place: int, inbox: SignalInbox) -> None:
        parent = os.getpid()
        # A signal that came in between would be noted in the child instead.
        with inbox.blocked():
            pid = os.fork()
            if not pid:
                inbox.forget()
        if not pid:
            self._become(place, parent)
        self._running[pid] = place

    def _become(self, place: int, parent: int) -> NoReturn:
        """Run a process, forked a moment ago, to its end."""
        status = 1
        ready, memory, mailboxes = self._ready_write, self._memory, self._mailboxes
        try:
            # For the parent alone, where it starts a brain.
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            die_with(parent, signal.SIGKILL)
            status = self._serve(
                Place(place, self._sockets, memory, mailboxes, lambda: _write(ready, place))
            )
        except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not `sys.exit`: what the parent has begun is the parent's to end.
            os._exit(status)

    def _stop(self, inbox: SignalInbox) -> int:
        """End all processes; return 1 if one did not end well."""
        for sock in self._sockets.values():
            sock.close()
        is_handed_over = self._successor.is_running
        for pid in self._running:
            os.kill(pid, STOP_HANDED_OVER if is_handed_over else STOP)
        limit_s = STOP_PARTS_S + (HANDED_OVER_S if is_handed_over else STOP_TIMEOUT_S)
        until = time.monotonic() + limit_s
        status = 0
        while self._running and (left_s := until - time.monotonic()) > 0:
            inbox.wait(self._ready_read, left_s)
            for pid in [*self._running]:
                ended = _status_of(pid)
                if ended is not None:
                    del self._running[pid]
                    # By the signal itself: it had not begun to serve.
                    status = status or int(ended not in {0, -STOP, -STOP_HANDED_OVER})
        for pid in self._running:
            log.error("brain_process_killed", place=self._running[pid])
            os.kill(pid, signal.SIGKILL)
        log.info("brain_stopped")
        return status or int(bool(self._running))


def _status_of(pid: int) -> int | None:
    """Return the exit status of a process that has ended, negative for a signal; else None."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _write(pipe: int, number: int) -> None:
    os.write(pipe, bytes([number]))
