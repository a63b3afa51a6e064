"""`zonal cache ls`, `put`, `get` and `rm`: objects, by URLs that the platform signs."""

from __future__ import annotations

import mimetypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import click

from zonal.cli import asking, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.parameters import Command, argument, sure
from zonal.cli.sources import regular

UNKNOWN = "application/octet-stream"


@click.command("ls", cls=Command)
@argument("place", metavar="BUCKET[/PREFIX]", help="only keys that begin so")
def ls(context: Context, place: str) -> None:
    """Show objects."""
    bucket, _, prefix = place.partition("/")
    with context.client() as client:
        context.show_list(
            client.buckets.objects(bucket, prefix=prefix), ["key", "size", "last_modified", "etag"]
        )


@click.command("put", cls=Command)
@argument("file", type=click.Path(readable=False), help="to upload")
@argument("place", metavar="BUCKET/KEY", help="with / at its end: the file's name there")
@click.option(
    "--type", "kind", metavar="TYPE", help="Content-Type; guessed from the file's name without it"
)
def put(context: Context, file: str, place: str, kind: str | None) -> None:
    """Upload a file."""
    name = Path(file).name
    bucket, key = _parts(place + name if place.endswith("/") else place)
    kind = kind or mimetypes.guess_type(name)[0] or UNKNOWN
    with (
        regular(file) as source,
        context.client() as client,
        terminal.progress(file, source.stat().st_size) as on_sent,
    ):
        client.buckets.upload(bucket, key, source, content_type=kind, on_sent=on_sent)
    context.done(f"Uploaded {file} to {bucket}/{key}.")


@click.command("get", cls=Command)
@argument("place", metavar="BUCKET/KEY", help="the object")
@argument(
    "file",
    required=False,
    type=click.Path(readable=False),
    help="the key's last part without it; - for stdout",
)
@click.option("--force", is_flag=True, help="replace a file that is there")
def get(context: Context, place: str, file: str | None, force: bool) -> None:
    """Download an object."""
    bucket, key = _parts(place)
    name = file or _last_part(key)
    with context.client() as client:
        if name == "-":
            with client.buckets.download(bucket, key) as pieces:
                for piece in pieces:
                    sys.stdout.buffer.write(piece)
            return
        target = _target(name, is_forced=force)
        with client.buckets.download(bucket, key) as pieces, terminal.progress(name) as on_read:
            _write(target, pieces, on_read)
    context.done(f"Downloaded {bucket}/{key} to {target}.")


@click.command("rm", cls=Command)
@argument("places", nargs=-1, required=True, metavar="BUCKET/KEY...", help="the objects")
@sure
def rm(context: Context, places: tuple[str, ...], yes: bool) -> None:
    """Delete objects, at their origin too."""
    found = sorted({_parts(place) for place in places})
    what = found[0][1] if len(found) == 1 else f"{len(found)} objects"
    asking.confirm(f"Delete {what}, at the origin too?", is_sure=yes)
    with context.client() as client:
        for bucket, objects in groupby(found, key=lambda each: each[0]):
            client.buckets.delete_objects(bucket, [key for _, key in objects])
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
