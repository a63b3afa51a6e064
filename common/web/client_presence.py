"""Whether the client whose request this thread answers is still connected."""

import select
import socket
from contextvars import ContextVar
from typing import Final

# The client has closed its end of the connection (only Linux reports it before all bytes are read).
# Arriving bytes are not an event: a client that sends its next request early is still connected.
GONE: Final = getattr(select, "POLLRDHUP", 0)

_socket: ContextVar[socket.socket | None] = ContextVar("client_socket", default=None)
_organization: ContextVar[int | None] = ContextVar("client_organization", default=None)


def set_client_socket(client: socket.socket | None) -> None:
    """Set the socket of the client whose request this thread answers from now on.

    It stays set after the view, because a streamed body is generated later, until the thread's next
    request.
    """
    _socket.set(client)
    _organization.set(None)


def set_organization(organization_id: int | None) -> None:
    """Set the organization that the client acts for, once it is authenticated."""
    _organization.set(organization_id)


def organization() -> int | None:
    """Return the organization of this thread's latest request; None if it was anonymous."""
    return _organization.get()


def client_fd() -> int | None:
    """Return the client's socket, to wait for ``GONE`` on; None if there is none."""
    client = _socket.get()
    return client.fileno() if client is not None else None


def is_gone() -> bool:
    """True if the connection is closed: by the client, the proxy in front of it, or this server."""
    fd = client_fd()
    if fd is None:
        return False
    if fd < 0:
        return True
    poll = select.poll()
    poll.register(fd, GONE)
    return bool(poll.poll(0))
