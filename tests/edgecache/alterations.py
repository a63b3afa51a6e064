"""What may happen to a file without its owner's knowledge."""

import os
from pathlib import Path


def flip(file: Path) -> None:
    """Flip a byte, and set the file's times as they were."""
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(before.st_size // 2)
        byte = opened.read(1)
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte[0] ^ 1]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(file: Path) -> None:
    """Put another file of the same size and times in its place."""
    other = file.with_name("other")
    other.write_bytes(file.read_bytes())
    flip(other)
    before = file.stat()
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def cut(file: Path) -> None:
    """Remove the last byte."""
    os.truncate(file, file.stat().st_size - 1)


def grow(file: Path) -> None:
    """Append a byte."""
    with file.open("ab") as opened:
        opened.write(b"x")
