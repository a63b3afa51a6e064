"""A new web server takes over from the running one without a refused connection.

SIGUSR2 makes gunicorn start a second server, with the code that is there now, on the same sockets.
gunicorn leaves it to an operator to end the first; here the second does, when it serves. If it does
not come up, the first goes on.
"""

import os
import signal
from pathlib import Path
from typing import Final

from platform_site.lib import systemd

# Set by gunicorn for a server that was started by another; gone when that one has ended.
FORMER: Final = "GUNICORN_PID"


def take_over(server_pid: int) -> None:
    """End the server that has started this one, if one has, and report the new process."""
    former = int(os.environ.get(FORMER, "0"))
    # A process that has ended since may have left its number to another.
    if former and former == _parent_of(server_pid):
        systemd.notify(f"MAINPID={server_pid}")
        os.kill(former, signal.SIGTERM)


def _parent_of(pid: int) -> int:
    # After the program's name in brackets, which may hold blanks: state, parent.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
