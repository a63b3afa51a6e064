"""The ports of the platform: read, checked and reserved before anything is started."""

import errno
import re
import socket
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from common.machine.errors import PortTakenError, StartError

HIGHEST_PORT: Final = 65_535


class PortReservations:
    """Ports reserved by this process, so that another platform on this machine chooses others.

    A port is free until its server listens, so two platforms that start concurrently would both
    choose it. A reservation is an abstract Unix socket, which Linux removes with its process and
    keeps per network namespace, as ports are. Elsewhere nothing is reserved.
    """

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for held in self._held.values():
            held.close()
        self._held.clear()

    def take(self, port: int) -> bool:
        """Reserve a port; True if no other process has it, or this system has no reservations."""
        if port in self._held or sys.platform != "linux":
            return True
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            reservation.bind(f"\0zonal-port-{port}")
        except OSError:
            reservation.close()
            return False
        self._held[port] = reservation
        return True

    def take_first(self, ports: range) -> int:
        """Reserve the first free port of a range; return it, or one that the system chooses."""
        for port in ports:
            if port not in self._held and is_free(port) and self.take(port):
                return port
        return free_port()


def is_free(port: int) -> bool:
    """True if a server could have this port on the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a free port, chosen by the system."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_from(environ: Mapping[str, str], setting: str, *, default: int) -> int:
    """Read a port from the environment. Raises StartError for anything but 1 to 65535."""
    text = environ.get(setting, "").strip() or str(default)
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= HIGHEST_PORT:
        sentence = f"{setting} must be from 1 to {HIGHEST_PORT}."
        raise StartError(sentence)
    return int(text)


def check_port(port: int, setting: str, *, address: str = "127.0.0.1") -> None:
    """Raise PortTakenError, naming the setting that changes it, if a port is not available."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # With SO_REUSEADDR, like servers, so that old connections of the last run are ignored.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            reason = (
                "is in use by another program"
                if error.errno == errno.EADDRINUSE
                else f"cannot be used ({error.strerror})"
            )
            other = port + 1 if port < HIGHEST_PORT else port - 1
            sentence = (
                f"Port {port} {reason}. Choose another one with the setting {setting}, for "
                f"example: {setting}={other} make run"
            )
            raise PortTakenError(sentence) from None
