"""The web processes of one machine: the label of the machine, questions between processes.

Each process that handles transactions listens on a Unix socket of its own in the run folder. A
connection carries one question and one answer, each a line of JSON. If the caller closes the
connection, its client has disconnected, and the owner cancels the statement.

Access is by the modes of the folder (0700) and the socket (0600): only processes of the same user,
which have the same keys and settings, can connect. Still the owner compares the principal of each
question with the one that began the transaction.
"""

import fcntl
import hashlib
import json
import os
import secrets
import select
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.db import connections

from common.machine.files import read_text, write_private
from common.machine.folders import make_socket_dir
from common.web import client_presence
from sqlgateway.errors import QueryCancelled

Message = Mapping[str, Any]

LABEL_DIGITS: Final = 8
SEED_NAME: Final = "seed"
# The time in which a process of the same machine sends its question or reads its answer.
EXCHANGE_S: Final = 3.0

log = structlog.get_logger(__name__)


class OwnerUnavailable(Exception):
    """The owning process does not answer: it has ended, and its transactions with it."""


class ProcessSocket:
    """The socket of this process, which is opened at its first use, after the fork.

    answer: called with each question, in the connection's thread.
    """

    def __init__(self, answer: Callable[[Message], Message]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._server: _Server | None = None

    @property
    def name(self) -> str:
        """The file's name in the run folder; it begins with the machine's label."""
        return self._listening().path.name

    @property
    def label(self) -> str:
        """The machine's label: 8 hexadecimal digits."""
        return self.name[:LABEL_DIGITS]

    def new_id(self) -> UUID:
        """Return a random id that begins with the machine's label."""
        return UUID(self.label + uuid4().hex[LABEL_DIGITS:])

    def is_own(self, name: str) -> bool:
        """True if the name is this process's."""
        return name == self.name

    def ask(
        self, name: str, question: Message, *, timeout_s: float, watches_client: bool = False
    ) -> Message:
        """Ask another process of this machine.

        watches_client: close the connection when this request's client disconnects.
        Raises OwnerUnavailable, QueryCancelled.
        """
        client_fd = client_presence.client_fd() if watches_client else None
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(timeout_s)
                link.connect(str(self._listening().path.with_name(name)))
                link.sendall(_line(question))
                _wait_for_answer(link, timeout_s, client_fd)
                with link.makefile("rb") as lines:
                    answer: Message = json.loads(lines.readline())
        except (OSError, ValueError) as exc:
            log.warning("sql_transaction_owner_away", kind=type(exc).__name__)
            raise OwnerUnavailable from None
        return answer

    def _listening(self) -> "_Server":
        with self._lock:
            if self._server is None:
                self._server = _listen(self._answer)
            return self._server


def _listen(answer: Callable[[Message], Message]) -> "_Server":
    """Open a socket in the run folder; remove those of processes that have ended."""
    name = f"{'0' * LABEL_DIGITS}-{secrets.token_hex(4)}"
    folder = make_socket_dir(Path(settings.DATA_DIR), None, longest_name=name)
    # A socket that does not listen yet looks like that of an ended process.
    with _locked(folder):
        label = _label(folder)
        _remove_stale(folder, label)
        server = _Server(folder / (label + name[LABEL_DIGITS:]), answer)
    threading.Thread(target=server.serve_forever, name="sql-transactions", daemon=True).start()
    return server


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _label(folder: Path) -> str:
    """Return the machine's label, which is random and stays the same as long as the folder exists.

    The host's name counts as well, so that machines that share the folder, or were copied with it,
    have different labels. Nothing can be learned about the name without the seed.
    """
    seed = folder / SEED_NAME
    if not seed.exists():
        write_private(seed, secrets.token_hex(16))
    text = f"{read_text(seed)}\0{socket.gethostname()}"
    return hashlib.sha256(text.encode()).hexdigest()[:LABEL_DIGITS]


def _remove_stale(folder: Path, label: str) -> None:
    for path in folder.glob(f"{label}-*"):
        with socket.socket(socket.AF_UNIX) as probe, suppress(BlockingIOError, FileNotFoundError):
            # It does not wait for a process that has a full queue.
            probe.setblocking(False)
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def _wait_for_answer(link: socket.socket, timeout_s: float, client_fd: int | None) -> None:
    """Wait until the answer begins.

    Raises QueryCancelled if the client disconnects before, TimeoutError.
    """
    poll = select.poll()
    poll.register(link, select.POLLIN)
    if client_fd is not None:
        poll.register(client_fd, client_presence.GONE)
    ready = poll.poll(timeout_s * 1000)
    if not ready:
        raise TimeoutError
    if all(fd == client_fd for fd, _ in ready):
        raise QueryCancelled("The client went away.")


def _line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    # More than all threads of the machine's processes: a full queue refuses callers.
    request_queue_size = 1024

    def __init__(self, path: Path, answer: Callable[[Message], Message]) -> None:
        self.path, self.answer = path, answer
        super().__init__(str(path), _Handler)

    def server_bind(self) -> None:
        """Let no other user connect, even if the folder were open."""
        super().server_bind()
        self.path.chmod(0o600)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection, then close what it opened in the database."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            connections.close_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log without the traceback, which may contain statements of tenants."""
        log.warning("sql_transaction_socket_failed")


class _Handler(socketserver.StreamRequestHandler):
    server: _Server
    timeout = EXCHANGE_S

    def handle(self) -> None:
        """Answer one question. A process that removes stale sockets connects without one."""
        question = self.rfile.readline()
        if not question:
            return
        # The statement's watchdog watches this socket.
        client_presence.set_client_socket(self.connection)
        self.wfile.write(_line(self.server.answer(json.loads(question))))
