"""The ports of the platform, looked at before anything is started."""

import errno
import re
import socket
from collections.abc import Mapping
from typing import Final

from platform_site.embedded.errors import PortTakenError, StartError

HIGHEST_PORT: Final = 65_535


def port_from(environ: Mapping[str, str], setting: str, *, default: int) -> int:
    """Read a port from the environment. Raises StartError for anything but 1 to 65535."""
    text = environ.get(setting, "").strip() or str(default)
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= HIGHEST_PORT:
        sentence = f"{setting} must be from 1 to {HIGHEST_PORT}, not {text!r}."
        raise StartError(sentence)
    return int(text)


def check_port(port: int, setting: str, *, address: str = "127.0.0.1") -> None:
    """Raise PortTakenError, with the setting that chooses another one, when it cannot be had."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do, so that connections of the last run that still linger do not count.
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
