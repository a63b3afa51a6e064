"""Whose connection one is, by the last request on it: a guess that only orders who waits."""

from collections.abc import Mapping
from socket import socket
from typing import Any, Final
from weakref import WeakKeyDictionary

# As gunicorn names the connection's socket.
SOCKET: Final = "gunicorn.socket"

_OF: Final[WeakKeyDictionary[socket, object]] = WeakKeyDictionary()


def note(environ: Mapping[str, Any], caller: object) -> None:
    """Remember who sent a request on its connection; environ: WSGI's."""
    sock: socket | None = environ.get(SOCKET)
    if sock is not None:
        _OF[sock] = caller


def of(sock: socket) -> object:
    """Give who sent the last request on a connection; None for a new one."""
    return _OF.get(sock)
