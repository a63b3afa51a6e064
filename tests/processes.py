"""What the kernel knows of processes."""

from contextlib import suppress
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the process ids of a process's children."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_ended(pid: int) -> bool:
    """True if a process is gone, or is one that its parent has not noted yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def connections_of(pid: int, port: int) -> int:
    """Return how many accepted connections of a port a process has."""
    inodes = set()
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = row.split()
        if fields[1].endswith(f":{port:04X}") and fields[3] == "01":
            inodes.add(f"socket:[{fields[9]}]")
    found = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        # One that it closes in the meantime is not counted.
        with suppress(FileNotFoundError):
            found += str(file.readlink()) in inodes
    return found
