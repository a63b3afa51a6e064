"""From a web process to the one that owns a transaction.

Both know the platform's keys, so each message is encrypted and authenticated with them. Against
replays the owner begins with a nonce that the message must name, and the answer names the message's
own. One question and one answer to a connection::

    owner   -> nonce
    caller  -> encrypted {"purpose", "nonce", "reply_nonce", "call", ...}
    owner   -> encrypted {"purpose", "nonce": reply_nonce, ...}

A frame is its length in four bytes and then its bytes.
"""

import json
import os
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import connections

from platform_site.lib import crypto

Message = Mapping[str, Any]

QUESTION: Final = "sql-transaction-question"
ANSWER: Final = "sql-transaction-answer"
NONCE_BYTES: Final = 16
# Encryption makes a message a third longer, and JSON may double it.
OVERHEAD: Final = 3
FRAME_MINIMUM_BYTES: Final = 2**16
HELLO_S: Final = 3.0
# Beside the transactions themselves: who connects and says nothing holds a thread for HELLO_S.
MAX_CONNECTIONS: Final = 64

log = structlog.get_logger(__name__)


class OwnerAway(Exception):
    """The owning process does not answer: it has ended, and its transactions with it."""


class Channel:
    """This process's end, started with its first transaction."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self.answer: Callable[[Message], Message] = _refuse

    def address(self) -> str:
        """Return ``host:port`` for other processes; the first call starts to listen."""
        with self._lock:
            if self._server is None:
                self._server = _Server(self)
                threading.Thread(
                    target=self._server.serve_forever, name="sql-channel", daemon=True
                ).start()
            return f"{settings.SQL.channel_host}:{self._server.server_address[1]}"

    def is_own(self, address: str) -> bool:
        """True if the address is this process's."""
        return self._server is not None and address == self.address()


def ask(address: str, question: Message, *, timeout_s: float) -> Message:
    """Ask the owner of a transaction.

    Raises OwnerAway.
    """
    host, _, port = address.rpartition(":")
    reply_nonce = secrets.token_hex(NONCE_BYTES)
    try:
        with socket.create_connection((host, int(port)), timeout=HELLO_S) as link:
            nonce = _receive(link, 2 * NONCE_BYTES).decode()
            link.settimeout(timeout_s)
            _send(link, QUESTION, {**question, "nonce": nonce, "reply_nonce": reply_nonce})
            answer = _open(_receive(link, answer_limit()), ANSWER, reply_nonce)
    except (OSError, EOFError, InvalidToken, ValueError) as exc:
        log.warning("sql_transaction_owner_away", kind=type(exc).__name__)
        raise OwnerAway from None
    return answer


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__((settings.SQL.channel_host, 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Refuse a connection more than there are places."""
        if not self.places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection, then free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()
            connections.close_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log without the traceback's values: they are statements of tenants."""
        log.warning("sql_channel_failed")


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer one question; who does not know the key gets the nonce and nothing else."""
        link: socket.socket = self.request
        link.settimeout(HELLO_S)
        nonce = secrets.token_hex(NONCE_BYTES)
        _send_frame(link, nonce.encode())
        try:
            question = _open(_receive(link, question_limit()), QUESTION, nonce)
        except (OSError, EOFError, InvalidToken, ValueError):
            return
        answer = self.server.channel.answer(question)
        link.settimeout(HELLO_S)
        _send(link, ANSWER, {**answer, "nonce": question["reply_nonce"]})


def _refuse(question: Message) -> Message:
    raise NotImplementedError


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
    """Return the longest frame of a question, in bytes: strangers can send one, too."""
    return FRAME_MINIMUM_BYTES + OVERHEAD * settings.SQL.body_limit_bytes


def answer_limit() -> int:
    """Return the longest frame of an answer, in bytes."""
    return FRAME_MINIMUM_BYTES + OVERHEAD * (settings.SQL.max_bytes + settings.SQL.body_limit_bytes)


def _receive(link: socket.socket, limit_bytes: int) -> bytes:
    length = int.from_bytes(_exactly(link, 4), "big")
    if length > limit_bytes:
        raise ValueError
    return _exactly(link, length)


def _exactly(link: socket.socket, size: int) -> bytes:
    pieces = []
    while size:
        piece = link.recv(min(size, 2**18))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


CHANNEL: Final = Channel()


def _after_fork() -> None:
    CHANNEL._server = None  # noqa: SLF001 - the parent's listener is not the child's


os.register_at_fork(after_in_child=_after_fork)
