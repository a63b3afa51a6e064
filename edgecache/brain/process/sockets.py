"""The sockets that a brain listens on: bound once, and inherited by its processes."""

import socket
from collections.abc import Mapping

from common.machine.ports import check_port
from edgecache.brain.conf.brain import BrainSettings
from edgecache.http.server.http_server import listening_socket
from edgecache.http.server.limits import ServerLimits

Sockets = dict[str, socket.socket]


def open_sockets(settings: BrainSettings, inherited: Mapping[str, socket.socket]) -> Sockets:
    """Return the listening socket of each port, by name.

    inherited: those of a former brain, as this returned them.
    Raises PortTakenError with the setting that chooses another port.
    """
    ports = {
        "internal": settings.internal,
        "workers": settings.workers,
        "objects": settings.s3,
    }
    missing = {name: row for name, row in ports.items() if name not in inherited}
    for row in missing.values():
        check_port(row.port, row.port_setting, address=row.address)
    found = dict(inherited)
    for name, row in missing.items():
        found[name] = listening_socket(row.address, row.port, ServerLimits())
    return found
