"""Who the client is whose request this thread answers, and whether it is still connected."""

import select
import socket
from contextvars import ContextVar
from typing import Final

# The client has closed its end of the connection (only Linux reports it before all bytes are read).
# Arriving bytes are not an event: a client that sends its next request early is still connected.
GONE: Final = getattr(select, "POLLRDHUP", 0)

_socket: ContextVar[socket.socket | None] = ContextVar("client_socket", default=None)
_share_key: ContextVar[int | str | None] = ContextVar("client_share_key", default=None)


def set_client_socket(client: socket.socket | None, network: str | None = None) -> None:
    """Set the socket of the client whose request this thread answers from now on.

    It stays set after the view, because a streamed body is generated later, until the thread's next
    request. network: ``share_key`` until the client is authenticated.
    """
    _socket.set(client)
    _share_key.set(network)


def set_organization(organization_id: int) -> None:
    """Set the organization that the client acts for, once it is authenticated."""
    _share_key.set(organization_id)


def share_key() -> int | str | None:
    """Return whose share of limited resources this thread's request uses; None for no share's.

    The organization's, or the network's of a client that is not authenticated.
    """
    return _share_key.get()


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
