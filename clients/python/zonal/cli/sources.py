"""Texts and files that a person or another program names, as other tools write them."""

import codecs
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from zonal.cli.configuration import UsageError

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_of(name: str) -> str:
    """Return the text of a file, `-` for the standard input: UTF-8, or UTF-16 with its mark."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as exc:
        raise UsageError(f"{name} cannot be read: {exc.strerror}.") from exc
    try:
        # As PowerShell writes files; a mark is no part of the text.
        return content.decode("utf-16" if content.startswith(UTF16) else "utf-8-sig")
    except UnicodeDecodeError as exc:
        shown = "The standard input" if name == "-" else name
        raise UsageError(f"{shown} is not UTF-8 text.") from exc


@contextmanager
def regular(name: str) -> Iterator[Path]:
    """Yield a file that can be sent a second time: a pipe is written to one first."""
    if name == "-":
        with _kept(sys.stdin.buffer) as path:
            yield path
        return
    source = Path(name)
    if source.is_dir() or not source.exists():
        raise UsageError(f"{name} is no file.")
    if source.is_file():
        yield source
        return
    with source.open("rb") as pipe, _kept(pipe) as path:
        yield path


@contextmanager
def _kept(pipe: BinaryIO) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(prefix="zonal-") as file:
        shutil.copyfileobj(pipe, file)
        file.flush()
        yield Path(file.name)
