"""The end of a listening socket."""

import socket
from contextlib import suppress
from typing import Final

# <asm-generic/socket.h>; Python has no name for it.
SO_BINDTOIFINDEX: Final = 62
NO_INTERFACE: Final = 2**31 - 1


def refuse_connections(listening: socket.socket) -> None:
    """Make the kernel refuse new connections; what it has queued can still be accepted.

    A connection that comes between the last accept and the close of a socket is reset. This affects
    every process that has the socket, and is permanent. No effect before Linux 5.7.
    """
    with suppress(OSError):
        if listening.family == socket.AF_UNIX:
            listening.shutdown(socket.SHUT_RD)
        else:
            # Packets of no interface find the socket any more.
            listening.setsockopt(socket.SOL_SOCKET, SO_BINDTOIFINDEX, NO_INTERFACE)
