"""A Unix socket beside the port: to a gateway on the same machine it costs less than TCP."""

import contextlib
import os
import socket
from pathlib import Path

from platform_site.embedded.errors import PortTakenError, StartError


def bind(path: Path) -> socket.socket:
    """Give a socket at a path, in place of one whose server is gone.

    Whoever may reach the path may connect, as with the port. Raises StartError.
    """
    if path.exists() and not path.is_socket():
        sentence = f"{path} is there, and no socket. Choose another path: ZBRAIN_S3_SOCKET."
        raise StartError(sentence)
    if _is_served(path):
        sentence = f"{path} is in use by another program. Choose another path: ZBRAIN_S3_SOCKET."
        raise PortTakenError(sentence)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(beside))
        beside.chmod(0o666)
        beside.replace(path)
    except OSError as error:
        bound.close()
        with contextlib.suppress(OSError):
            beside.unlink()
        sentence = f"{path} cannot be used ({error.strerror or error}). It is ZBRAIN_S3_SOCKET."
        raise StartError(sentence) from None
    return bound


def _is_served(path: Path) -> bool:
    """Tell whether somebody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
