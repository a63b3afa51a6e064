"""Reports of a process to systemd (sd_notify(3)); no effect without a supervisor."""

import os
import socket
from contextlib import suppress


def notify(*states: str) -> None:
    """Report states such as ``READY=1`` or ``MAINPID=7``."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        # A name in the abstract namespace.
        address = f"\0{address[1:]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.sendto("\n".join(states).encode(), address)


def watchdog_s() -> float:
    """Return how often systemd expects ``WATCHDOG=1`` of this process, 0 for never."""
    interval_us = os.environ.get("WATCHDOG_USEC", "")
    is_for_this = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(interval_us) / 1e6 if interval_us.isdecimal() and is_for_this else 0.0
