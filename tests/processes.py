"""What the kernel knows of processes."""

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
