"""`zonal cache ls`, `put`, `get` and `rm`: objects, by URLs that the platform signs."""

import mimetypes
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from zonal.cli import asking, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.sources import regular

UNKNOWN = "application/octet-stream"


def ls(context: Context, arguments: Namespace) -> None:
    """Show the objects of a bucket whose keys begin with a prefix."""
    bucket, _, prefix = arguments.place.partition("/")
    with context.client() as client:
        context.show_list(
            client.buckets.objects(bucket, prefix=prefix), ["key", "size", "last_modified", "etag"]
        )


def put(context: Context, arguments: Namespace) -> None:
    """Upload a file."""
    name = Path(arguments.file).name
    place = arguments.place + name if arguments.place.endswith("/") else arguments.place
    bucket, key = _parts(place)
    kind = arguments.type or mimetypes.guess_type(name)[0] or UNKNOWN
    with (
        regular(arguments.file) as source,
        context.client() as client,
        terminal.progress(arguments.file, source.stat().st_size) as on_sent,
    ):
        client.buckets.upload(bucket, key, source, content_type=kind, on_sent=on_sent)
    context.done(f"Uploaded {arguments.file} to {bucket}/{key}.")


def get(context: Context, arguments: Namespace) -> None:
    """Download an object; a file appears when it is whole."""
    bucket, key = _parts(arguments.place)
    name = arguments.file or _last_part(key)
    with context.client() as client:
        if name == "-":
            with client.buckets.download(bucket, key) as pieces:
                for piece in pieces:
                    sys.stdout.buffer.write(piece)
            return
        target = _target(name, is_forced=arguments.force)
        with client.buckets.download(bucket, key) as pieces, terminal.progress(name) as on_read:
            _write(target, pieces, on_read)
    context.done(f"Downloaded {bucket}/{key} to {target}.")


def rm(context: Context, arguments: Namespace) -> None:
    """Delete objects; those that do not exist are no error."""
    places = sorted({_parts(place) for place in arguments.place})
    what = places[0][1] if len(places) == 1 else f"{len(places)} objects"
    asking.confirm(f"Delete {what}, at the origin too?", is_sure=arguments.yes)
    with context.client() as client:
        for bucket, found in groupby(places, key=lambda place: place[0]):
            client.buckets.delete_objects(bucket, [key for _, key in found])
    context.done(f"Deleted {what}.")


def _parts(place: str) -> tuple[str, str]:
    bucket, _, key = place.partition("/")
    if not bucket or not key:
        raise UsageError(f"{place} names no object, such as assets/logo.png.")
    return bucket, key


def _last_part(key: str) -> str:
    """Return a name in this folder; a key is somebody else's text and leads nowhere else."""
    name = key.rpartition("/")[2]
    if name in {"", ".", ".."} or Path(name).name != name:
        raise UsageError("Name the file to write.")
    return name


def _target(name: str, *, is_forced: bool) -> Path:
    """Return where to write."""
    target = Path(name)
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file in it.")
    if target.exists() and not is_forced:
        raise UsageError(f"{target} is there already: replace it with --force.")
    return target


def _write(target: Path, pieces: Iterator[bytes], on_read: Callable[[int], None]) -> None:
    """Write a file beside the target and put it in its place when it is whole."""
    part = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            for piece in pieces:
                file.write(piece)
                on_read(file.tell())
        part.replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise
