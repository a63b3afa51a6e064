"""The parent of a brain's processes: it binds the ports, starts them, and replaces one that ends.

It serves nothing itself and has no event loop, so that it can fork at any time. SIGTERM and SIGINT
end all processes; SIGUSR2 and SIGHUP start a brain that takes over (``takeover``).
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NoReturn
from uuid import UUID

import structlog

from common.machine.child import die_with
from common.machine.errors import StartError
from edgecache.brain.conf.brain import BrainSettings
from edgecache.brain.process.one_process import (
    HANDED_OVER_S,
    STOP,
    STOP_HANDED_OVER,
    STOP_TIMEOUT_S,
)
from edgecache.brain.process.sockets import Sockets, open_sockets
from edgecache.brain.process.takeover import Successor, has_former, inherited, report_ready
from edgecache.brain.siblings.mailboxes import Mailboxes
from edgecache.brain.siblings.process_context import ProcessContext
from edgecache.brain.siblings.shared_memory import SharedMemory
from edgecache.http.server.http_server import tls_context
from edgecache.runtime.listening import refuse_connections
from edgecache.runtime.resource_limits import share_memory

log = structlog.get_logger(__name__)

# What a process sends when it serves.
SERVES: Final = signal.SIGUSR1
# Blocked in the parent, which takes them one by one. It has no other thread that could get them.
ENDS: Final = frozenset({signal.SIGTERM, signal.SIGINT})
# SIGHUP as well: by default it would end all processes in the middle of their requests.
RELOADS: Final = frozenset({signal.SIGUSR2, signal.SIGHUP})
SIGNALS: Final = (*ENDS, *RELOADS, signal.SIGCHLD, SERVES)
# Delay before a process is replaced, so that one that cannot start does not use the whole machine.
RESTART_S: Final = 1.0
# A process whose event loop has not run for this long is replaced; how often the parent checks.
HANGS_S: Final = 60.0
POLL_S: Final = 5.0
# What a process needs to stop beyond the time for its requests.
STOP_PARTS_S: Final = 15.0


Serve = Callable[[ProcessContext], int]


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
        self._has_begun_others = self._has_started = self._is_handed_over = False
        # When it last checked for hanging processes, and since when silence means that one hangs.
        self._checked_at = self._judges_from = time.monotonic()
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
        # The parent process may ignore this signal; the kernel would then keep no exit statuses.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        # The others follow when it serves: what keeps one from it is reported once.
        self._fork(0)
        while (status := self._step()) is None:
            pass
        return self._stop() or status

    def _step(self) -> int | None:
        """Wait for the next event and act on it; return the exit status after the last one."""
        due_s = min(self._due.values()) - time.monotonic() if self._due else POLL_S
        came, sender = _next_signal(min(due_s, POLL_S))
        if came in ENDS:
            self._is_handed_over = self._successor.is_process(sender)
            return 0
        # A process that ends as well (see the next signal) or is itself taking over needs no
        # successor.
        if came in RELOADS and self._has_started and not ENDS & signal.sigpending():
            self._successor.start(self._sockets)
        self._successor.note_end()
        self._kill_hanging()
        if self._note_ended() and not self._has_started:
            return 1
        if not self._has_started:
            self._go_on_starting()
        for place in [place for place, at in self._due.items() if at <= time.monotonic()]:
            del self._due[place]
            self._fork(place)
        return None

    def _go_on_starting(self) -> None:
        """Start the processes beside the first one, and report when all of them serve."""
        if self._memory.is_serving(0) and not self._has_begun_others:
            self._has_begun_others = True
            for place in range(1, self._count):
                self._fork(place)
        if all(map(self._memory.is_serving, range(self._count))):
            self._has_started = True
            log.info("brain_started", processes=self._count)
            report_ready()

    def _kill_hanging(self) -> None:
        """Kill hanging processes: their clients would wait forever, and others' writes often.

        Kill none after a pause of the parent: a paused machine pauses all processes.
        """
        now = time.monotonic()
        if now - self._checked_at > 2 * POLL_S:
            self._judges_from = now + HANGS_S
        self._checked_at = now
        if now < self._judges_from:
            return
        for pid, place in self._running.items():
            if self._memory.silent_s(place) > HANGS_S:
                log.error("brain_process_hangs", place=place)
                os.kill(pid, signal.SIGKILL)

    def _note_ended(self) -> bool:
        """Note which processes have ended, to be replaced; True if any has."""
        statuses = {pid: _status_of(pid) for pid in self._running}
        ended = {pid: status for pid, status in statuses.items() if status is not None}
        for pid, status in ended.items():
            place = self._running.pop(pid)
            # The others would leave connections to it, and wait for its confirmations.
            self._memory.close(place)
            report = self._memory.read_report(place)
            if report is not None:
                self._mailboxes.tell_ended(place, UUID(report["brain"]))
            self._due[place] = time.monotonic() + RESTART_S
            log.error("brain_process_ended", place=place, status=status)
        return bool(ended)

    def _fork(self, place: int) -> None:
        """Start a process in a place; one that cannot be started now is tried again."""
        self._memory.forget_seen(place)
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            log.exception("brain_process_not_started", place=place, reason=error.strerror)
            self._due[place] = time.monotonic() + RESTART_S
            return
        if not pid:
            self._become(place, parent)
        self._running[pid] = place

    def _become(self, place: int, parent: int) -> NoReturn:
        """Run a process, forked a moment ago, to its end."""
        status = 1
        # What a terminal and `reload` send is for the parent alone.
        for each in (signal.SIGINT, *RELOADS):
            signal.signal(each, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            die_with(parent, signal.SIGKILL)
            on_ready = partial(os.kill, parent, SERVES)
            status = self._serve(
                ProcessContext(place, self._sockets, self._memory, self._mailboxes, on_ready)
            )
        except BaseException:
            log.exception("brain_process_failed", place=place)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not `sys.exit`: only the parent may clean up what it has created.
            os._exit(status)

    def _stop(self) -> int:
        """End all processes; return 1 if one did not end well."""
        self._close_sockets()
        if not self._is_handed_over:
            self._successor.end()
        until = self._tell_to_stop(STOP_HANDED_OVER if self._is_handed_over else STOP)
        status = 0
        while True:
            # Before the wait: processes that ended with the last signal cause no other signal.
            for pid in [*self._running]:
                ended = _status_of(pid)
                if ended is not None:
                    del self._running[pid]
                    # By the signal itself: it had not begun to serve.
                    status = status or int(ended not in {0, -STOP, -STOP_HANDED_OVER})
            left_s = until - time.monotonic()
            if not self._running or left_s <= 0:
                break
            if _next_signal(left_s)[0] in ENDS:
                # A process that is draining for its successor ends now.
                until = min(until, self._tell_to_stop(STOP))
        for pid in self._running:
            log.error("brain_process_killed", place=self._running[pid])
            os.kill(pid, signal.SIGKILL)
        if not self._is_handed_over:
            self._successor.wait_for_end(until)
        log.info("brain_stopped")
        return status or int(bool(self._running))

    def _close_sockets(self) -> None:
        for sock in self._sockets.values():
            if not (self._is_handed_over or has_former()):
                refuse_connections(sock)
            sock.close()

    def _tell_to_stop(self, how: signal.Signals) -> float:
        """Send the processes STOP or STOP_HANDED_OVER; return until when (time.monotonic())."""
        for pid in self._running:
            os.kill(pid, how)
        limit_s = HANDED_OVER_S if how == STOP_HANDED_OVER else STOP_TIMEOUT_S
        return time.monotonic() + limit_s + STOP_PARTS_S


def check(settings: BrainSettings) -> None:
    """Raise StartError, in one sentence, for files that no process could use."""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sentence = f"{settings.data_dir} cannot be used ({error.strerror}). It is in ZDATA_DIR."
        raise StartError(sentence) from None
    if settings.tls_cert and settings.tls_key:
        try:
            tls_context(settings.tls_cert, settings.tls_key)
        except OSError as error:
            sentence = f"ZBRAIN_TLS_CERT and ZBRAIN_TLS_KEY cannot be used ({error})."
            raise StartError(sentence) from None


def _next_signal(timeout_s: float) -> tuple[int, int]:
    """Wait for one of SIGNALS; return it and the process that sent it, 0 when the time is over."""
    came = signal.sigtimedwait(SIGNALS, max(0.0, timeout_s))
    # After a pause longer than the time Python 3.11 returns a signal that never came.
    if came is None or came.si_signo not in SIGNALS:
        return 0, 0
    return came.si_signo, came.si_pid


def _status_of(pid: int) -> int | None:
    """Return an ended process's exit status, negative for a signal; None if it is running."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None
