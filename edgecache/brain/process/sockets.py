"""The sockets that a brain listens on: given by its environment, or bound by itself.

The brains of a machine are given the same ones, so that what the kernel has queued outlives each of
them. A supervisor gives them as systemd does. Source: sd_listen_fds(3).
"""

import ipaddress
import os
import socket
from dataclasses import dataclass
from typing import Final

from common.machine.errors import StartError
from common.machine.ports import check_port
from edgecache.brain.conf.brain import BrainSettings, Listener
from edgecache.http.server.http_server import bound_listener, listening_socket
from edgecache.http.server.limits import ServerLimits

FIRST_GIVEN: Final = 3


@dataclass(frozen=True, slots=True)
class Sockets:
    """The listening sockets by the name of their API. are_given: to all brains of the machine."""

    by_name: dict[str, socket.socket]
    are_given: bool


def open_sockets(settings: BrainSettings) -> Sockets:
    """Return the sockets of this process's environment, or new ones.

    Raises PortTakenError with the setting that chooses another port, StartError if the given ones
    are not those of the settings.
    """
    wanted = {
        "internal": settings.internal,
        "workers": settings.workers,
        "objects": settings.s3,
    }
    given = _given()
    found = _by_name(given, wanted) if given else {}
    if settings.metrics_port:
        wanted["metrics"] = metrics_listener(settings)
    missing = {name: row for name, row in wanted.items() if name not in found}
    for row in missing.values():
        check_port(row.port, row.port_setting, address=row.address)
    for name, row in missing.items():
        found[name] = listening_socket(row.address, row.port, ServerLimits())
    return Sockets(found, are_given=bool(given))


def metrics_listener(settings: BrainSettings) -> Listener:
    """Return where this brain alone answers for itself."""
    return Listener("127.0.0.1", settings.metrics_port, "ZBRAIN_METRICS_PORT")


def _given() -> list[socket.socket]:
    is_for_this = os.environ.pop("LISTEN_PID", "") == str(os.getpid())
    count = os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", "")
    if not (is_for_this and count.isdecimal()):
        return []
    found = [socket.socket(fileno=FIRST_GIVEN + number) for number in range(int(count))]
    for sock in found:
        sock.set_inheritable(False)
    return found


def _by_name(given: list[socket.socket], wanted: dict[str, Listener]) -> dict[str, socket.socket]:
    """Return the given sockets by name: that of the address and port at which each listens.

    The settings decide whether credentials may be sent in clear: a socket that listens elsewhere is
    refused.
    """
    by_address = {_address_of(sock): sock for sock in given}
    addresses = {name: (row.address, row.port) for name, row in wanted.items()}
    if by_address.keys() != set(addresses.values()):
        named = ", ".join(f"{row.port_setting}={row.address}:{row.port}" for row in wanted.values())
        listening = ", ".join(f"{address}:{port}" for address, port in sorted(by_address))
        sentence = (
            f"The sockets that this brain is given listen at {listening}, and its settings say "
            f"{named}: make both the same."
        )
        raise StartError(sentence)
    return {name: bound_listener(by_address[at], ServerLimits()) for name, at in addresses.items()}


def _address_of(sock: socket.socket) -> tuple[str, int]:
    if sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return str(sock.getsockname()), 0
    address, port = sock.getsockname()[:2]
    return str(ipaddress.ip_address(address)), port
