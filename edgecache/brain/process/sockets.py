"""The sockets that a brain listens on: bound once, and inherited by its processes."""

import contextlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from common.machine.errors import PortTakenError, StartError
from common.machine.ports import check_port
from edgecache.brain.conf.brain import BrainSettings
from edgecache.http.server.http_server import BACKLOG, listening_socket
from edgecache.http.server.limits import ServerLimits

# The object API's Unix socket, beside its port.
UNIX: Final = "objects-file"

Sockets = dict[str, socket.socket]


def open_sockets(settings: BrainSettings, inherited: Mapping[str, socket.socket]) -> Sockets:
    """Return listening sockets by name: each port's, and UNIX if there is one.

    inherited: those of a former brain, as this returned them.
    Raises PortTakenError with the setting that chooses another port; StartError for a path that
    cannot be a socket.
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
    # The Unix socket first: a client that can connect to the port can also connect to the socket.
    if settings.s3_socket is not None and UNIX not in found:
        found[UNIX] = bind_unix_socket(settings.s3_socket)
    for name, row in missing.items():
        found[name] = listening_socket(row.address, row.port, ServerLimits())
    return found


def bind_unix_socket(path: Path) -> socket.socket:
    """Return a socket that listens on a path; it replaces the socket of a server that has ended.

    Every local user who can reach the path may connect, as with the port. A proxy on the same
    machine needs less processor time with it than with TCP. Raises StartError.
    """
    if path.exists() and not path.is_socket():
        sentence = f"{path} exists and is no socket. Choose another path: ZBRAIN_S3_SOCKET."
        raise StartError(sentence)
    if _is_served(path):
        sentence = f"{path} is in use by another program. Choose another path: ZBRAIN_S3_SOCKET."
        raise PortTakenError(sentence)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(temporary))
        bound.listen(BACKLOG)
        temporary.chmod(0o666)
        temporary.replace(path)
    except OSError as error:
        bound.close()
        with contextlib.suppress(OSError):
            temporary.unlink()
        sentence = f"{path} cannot be used ({error.strerror or error}). It is ZBRAIN_S3_SOCKET."
        raise StartError(sentence) from None
    return bound


def _is_served(path: Path) -> bool:
    """True if a server listens at this path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
