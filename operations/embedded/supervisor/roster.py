"""The running children, recorded on disk for the start after a killed supervisor."""

import json
import secrets
import signal
from pathlib import Path
from typing import Final

from common.machine.files import read_text, write_private
from operations.embedded.supervisor.known_processes import (
    ProcessIdentity,
    end,
    identify,
    processes_marked,
)

FILE_NAME: Final = "supervisor.json"
MARK_NAME: Final = "ZSUPERVISOR"
END_STEPS: Final = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


class Roster:
    """The children of one supervisor, by process id and start time.

    Children also inherit a random mark in their environment, so that grandchildren are found
    when the child between is gone.
    """

    def __init__(self, data_dir: Path) -> None:
        """data_dir: the folder whose lock the supervisor holds."""
        self._path = data_dir / FILE_NAME
        self._mark = secrets.token_hex(16)
        self._children: dict[str, ProcessIdentity] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Variables that every recorded child's environment must contain."""
        return {MARK_NAME: self._mark}

    def end_leftovers(self) -> int:
        """End the children of an earlier supervisor; return their number.

        Another process that reuses one of the ids has another start time and no mark.
        """
        mark, children = self._read()
        leftovers = {child for child in children if child.is_alive()}
        leftovers |= set(processes_marked(f"{MARK_NAME}={mark}")) if mark else set()
        end(leftovers, END_STEPS)
        self._path.unlink(missing_ok=True)
        return len(leftovers)

    def add(self, name: str, pid: int) -> None:
        """Record a child that has just started and is not reaped yet."""
        identity = identify(pid)
        if identity is not None:
            self._children[name] = identity
            self._write()

    def remove(self, name: str) -> None:
        """Remove a child that ended."""
        if self._children.pop(name, None) is not None:
            self._write()

    def _write(self) -> None:
        children = [[child.pid, child.began] for child in self._children.values()]
        write_private(self._path, json.dumps({"mark": self._mark, "children": children}))

    def _read(self) -> tuple[str, list[ProcessIdentity]]:
        try:
            content = json.loads(read_text(self._path) or "{}")
            children = [ProcessIdentity(int(pid), str(began)) for pid, began in content["children"]]
            return str(content["mark"]), children
        except (ValueError, KeyError, TypeError):
            return "", []
