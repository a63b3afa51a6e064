"""The protocol between a web process and the process that owns a transaction.

Messages are encrypted and authenticated with the platform's keys. Against replays, the owner sends
a nonce that the caller's messages must contain, and the answer must contain the caller's own nonce.
If the caller closes the connection, the owner treats this as a disconnected client and cancels the
statement. A connection carries one question and one answer::

    owner   -> nonce
    caller  -> encrypted {"purpose", "nonce"}: the proof that it knows the keys
    caller  -> encrypted {"purpose", "nonce", "reply_nonce", "call", ...}
    owner   -> encrypted {"purpose", "nonce": reply_nonce, ...}

A frame has a length of four bytes, then its bytes; a deadline applies to the whole frame. Any host
on the network can connect. Connections that have not sent a proof have slots of their own, and a
new one replaces the oldest. An attacker who wants to keep a caller out must open MAX_UNPROVEN
connections while the caller's proof is in transit.
"""

import json
import os
import secrets
import select
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import structlog
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import connections

from common import crypto
from common.web import client_presence
from common.web.compute_slots import waiting

Message = Mapping[str, Any]

PROOF: Final = "sql-transaction-proof"
QUESTION: Final = "sql-transaction-question"
ANSWER: Final = "sql-transaction-answer"
NONCE_BYTES: Final = 16
PROOF_LIMIT_BYTES: Final = 1024
# Encryption makes a message a third longer, and JSON may double it.
OVERHEAD: Final = 3
FRAME_MINIMUM_BYTES: Final = 2**16
# The time of a frame, except the answer, which has the caller's timeout.
FRAME_S: Final = 3.0
MAX_CALLERS: Final = 64
MAX_UNPROVEN: Final = 128
UNREADABLE: Final = (OSError, EOFError, InvalidToken, ValueError)

log = structlog.get_logger(__name__)


class OwnerUnavailable(Exception):
    """The owning process does not answer: it has ended, and its transactions with it."""


class CallerGone(Exception):
    """The client of this request disconnected before the owner answered."""


class Channel:
    """The server of this process, which starts with the first transaction.

    answer: called with each question, in the connection's thread.
    """

    def __init__(self, answer: Callable[[Message], Message]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._server: _Server | None = None
        os.register_at_fork(after_in_child=self._forget_listener)

    def address(self) -> str:
        """Return ``host:port`` for other processes; the first call starts the server."""
        with self._lock:
            if self._server is None:
                self._server = _Server(self._answer)
                threading.Thread(
                    target=self._server.serve_forever, name="sql-channel", daemon=True
                ).start()
            return f"{settings.SQL.channel_host}:{self._server.server_address[1]}"

    def is_own(self, address: str) -> bool:
        """True if the address is this process's."""
        return self._server is not None and address == self.address()

    def _forget_listener(self) -> None:
        """Forget the parent's server in a child process."""
        self._server = None


def ask(
    address: str, question: Message, *, timeout_s: float, watches_client: bool = False
) -> Message:
    """Ask the owner of a transaction.

    watches_client: close the connection when this request's client disconnects.
    Raises OwnerUnavailable, CallerGone.
    """
    host, _, port = address.rpartition(":")
    reply_nonce = secrets.token_hex(NONCE_BYTES)
    try:
        with socket.create_connection((host, int(port)), timeout=FRAME_S) as link:
            nonce = _receive(link, 2 * NONCE_BYTES, timeout_s=FRAME_S).decode()
            link.settimeout(timeout_s)
            _send(link, PROOF, {"nonce": nonce})
            _send(link, QUESTION, {**question, "nonce": nonce, "reply_nonce": reply_nonce})
            _wait_for_answer(
                link, timeout_s, client_presence.client_fd() if watches_client else None
            )
            answer = _receive(link, answer_limit(), timeout_s=timeout_s)
            return _open(answer, ANSWER, reply_nonce)
    except UNREADABLE as exc:
        log.warning("sql_transaction_owner_away", kind=type(exc).__name__)
        raise OwnerUnavailable from None


def _wait_for_answer(link: socket.socket, timeout_s: float, client_fd: int | None) -> None:
    """Wait until the answer begins. Raises CallerGone if the client disconnects before."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    if client_fd is not None:
        poll.register(client_fd, client_presence.GONE)
    with waiting():
        ready = poll.poll(timeout_s * 1000)
    if ready and all(fd == client_fd for fd, _ in ready):
        raise CallerGone


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    # Large, because a full queue makes callers wait for a second.
    request_queue_size = 8 * MAX_UNPROVEN

    def __init__(self, answer: Callable[[Message], Message]) -> None:
        self.answer = answer
        self.places = threading.BoundedSemaphore(MAX_CALLERS)
        self._lock = threading.Lock()
        # In the order in which they were accepted.
        self._unproven: dict[socket.socket, None] = {}
        super().__init__((settings.SQL.channel_host, 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a slot for a connection without a proof; close the oldest one if none is free."""
        with self._lock:
            if len(self._unproven) >= MAX_UNPROVEN:
                oldest = next(iter(self._unproven))
                del self._unproven[oldest]
                # Its thread then closes it.
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._unproven[request] = None
        super().process_request(request, client_address)

    def take_caller(self, link: socket.socket) -> bool:
        """Take a caller's slot for a connection with a proof; False if none becomes free."""
        with self._lock:
            if link not in self._unproven:
                return False
            del self._unproven[link]
        # Waits, because a caller without an answer would treat the transaction as lost.
        return self.places.acquire(timeout=FRAME_S)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, however it ended."""
        with self._lock:
            self._unproven.pop(request, None)
        super().shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection, then close what it opened in the database."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            connections.close_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log without the traceback, which may contain statements of tenants."""
        log.warning("sql_channel_failed")


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer one question. A caller without the key gets only the nonce."""
        link: socket.socket = self.request
        link.settimeout(FRAME_S)
        nonce = secrets.token_hex(NONCE_BYTES)
        try:
            _send_frame(link, nonce.encode())
            _open(_receive(link, PROOF_LIMIT_BYTES, timeout_s=FRAME_S), PROOF, nonce)
        except UNREADABLE:
            return
        if self.server.take_caller(link):
            try:
                self._answer(link, nonce)
            finally:
                self.server.places.release()

    def _answer(self, link: socket.socket, nonce: str) -> None:
        try:
            question = _open(_receive(link, question_limit(), timeout_s=FRAME_S), QUESTION, nonce)
        except UNREADABLE:
            return
        # The statement's watchdog watches this socket.
        client_presence.set_client_socket(link)
        answer = self.server.answer(question)
        link.settimeout(FRAME_S)
        _send(link, ANSWER, {**answer, "nonce": question["reply_nonce"]})


def _send(link: socket.socket, purpose: str, message: Message) -> None:
    _send_frame(link, crypto.encrypt(json.dumps({**message, "purpose": purpose})).encode())


def _open(frame: bytes, purpose: str, nonce: str) -> Message:
    message: dict[str, Any] = json.loads(crypto.decrypt(frame.decode()))
    if message.get("purpose") != purpose or message.get("nonce") != nonce:
        raise ValueError
    return message


def _send_frame(link: socket.socket, frame: bytes) -> None:
    link.sendall(len(frame).to_bytes(4, "big") + frame)


def question_limit() -> int:
    """Return the maximum size of a question's frame, in bytes."""
    return FRAME_MINIMUM_BYTES + OVERHEAD * settings.SQL.body_limit_bytes


def answer_limit() -> int:
    """Return the maximum size of an answer's frame, in bytes."""
    return FRAME_MINIMUM_BYTES + OVERHEAD * (settings.SQL.max_bytes + settings.SQL.body_limit_bytes)


def _receive(link: socket.socket, limit_bytes: int, *, timeout_s: float) -> bytes:
    """Return a frame.

    Raises TimeoutError if it is not complete within the time, EOFError, and ValueError if it is too
    long.
    """
    deadline = time.monotonic() + timeout_s
    length = int.from_bytes(_exactly(link, 4, deadline), "big")
    if length > limit_bytes:
        raise ValueError
    return _exactly(link, length, deadline)


def _exactly(link: socket.socket, size: int, deadline: float) -> bytes:
    pieces = []
    while size:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        link.settimeout(left_s)
        piece = link.recv(min(size, 2**18))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
