"""`zonal cache`: buckets, objects, keys of the object API, purges."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Literal, get_args

import click

from zonal.cli import asking, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.describe import size
from zonal.cli.parameters import Group, argument, sure

Access = Literal["read", "write"]


@click.group("cache", cls=Group)
def cache() -> None:
    """Buckets, purges, keys of the object API."""


@cache.group("buckets")
def buckets() -> None:
    """Buckets."""


@cache.group("keys")
def keys() -> None:
    """Access keys for S3 clients."""


@cache.command("status")
def status(context: Context) -> None:
    """Show the cache's state."""
    with context.client() as client:
        found = client.cache.status()
    context.show(
        found,
        [
            ("brain", "healthy" if found.brain_healthy else "away"),
            ("nodes online", f"{found.online_nodes} of {found.total_nodes}"),
            ("used", f"{size(found.used_cache_bytes)} of {size(found.total_cache_bytes)}"),
            ("hit ratio", f"{found.hit_ratio:.1%}"),
        ],
    )


@buckets.command("list")
def buckets_list(context: Context) -> None:
    """Show buckets."""
    with context.client() as client:
        context.show_list(
            client.buckets.list(), ["name", "is_public", "origin", "public_name", "created_at"]
        )


@buckets.command("create")
@argument("name", help="unique in the environment")
@click.option("--public", is_flag=True, help="anyone may read its objects")
@click.option("--origin", metavar="NAME", help="where its objects come from")
def buckets_create(context: Context, name: str, public: bool, origin: str | None) -> None:
    """Make a bucket."""
    with context.client() as client:
        made = asking.stepped_up(
            client,
            lambda: client.buckets.create(name, is_public=public or None, origin=origin),
        )
    context.done(f"Made {made.name}.", made)


@buckets.command("delete")
@argument("name", help="its name")
def buckets_delete(context: Context, name: str) -> None:
    """Delete an empty bucket."""
    with context.client() as client:
        asking.stepped_up(client, lambda: client.buckets.delete(name))
    context.done(f"Deleted {name}.")


@cache.command("objects")
@argument("bucket", help="its name")
@click.option("--prefix", default="", metavar="PREFIX", help="only keys that begin so")
def objects(context: Context, bucket: str, prefix: str) -> None:
    """Show the objects of a bucket."""
    with context.client() as client:
        context.show_list(
            client.buckets.objects(bucket, prefix=prefix),
            ["key", "size", "last_modified", "etag"],
        )


@cache.command("purge")
@click.option("--key", "keys", multiple=True, metavar="BUCKET/KEY", help="may be repeated")
@click.option("--prefix", metavar="BUCKET/PREFIX", help="of every key that begins so")
@click.option("--tag", "tags", multiple=True, metavar="BUCKET/TAG", help="of all that have it")
@click.option("--all", "everything", is_flag=True, help="of the whole environment")
@click.option("--preview", is_flag=True, help="only count")
@sure
def purge(
    context: Context,
    keys: tuple[str, ...],
    prefix: str | None,
    tags: tuple[str, ...],
    everything: bool,
    preview: bool,
    yes: bool,
) -> None:
    """Remove cached copies."""
    if not (keys or prefix or tags or everything):
        raise UsageError("Say what to purge: --key, --prefix, --tag or --all.")
    if everything and not preview:
        asking.confirm("Purge everything that the environment has cached?", is_sure=yes)
    with context.client() as client:
        purged = client.cache.purge(
            keys=keys or None,
            prefix=prefix,
            tags=tags or None,
            everything=everything,
            preview=preview,
        )
    verb = "Would purge" if preview else "Purged"
    context.done(f"{verb} {purged.objects_purged} objects, {size(purged.bytes_freed)}.", purged)


@keys.command("list")
def keys_list(context: Context) -> None:
    """Show access keys for S3 clients."""
    with context.client() as client:
        context.show_list(
            client.access_keys.list(), ["access_key_id", "label", "access", "last_used_at"]
        )


@keys.command("create")
@argument("label", required=False, default="", help="a note for people")
@click.option(
    "--access",
    type=click.Choice(get_args(Access)),
    default="write",
    help="write without it",
)
def keys_create(context: Context, label: str, access: Access) -> None:
    """Make an access key."""
    with context.client() as client:
        made = asking.stepped_up(client, lambda: client.access_keys.create(label, access=access))
    if context.is_json:
        terminal.write(terminal.json_text(asdict(made)))
        return
    terminal.fields(
        [
            ("access key id", made.access_key_id),
            ("secret access key", made.secret_access_key),
            ("endpoint", made.endpoint),
        ],
        out=sys.stdout,
    )
    terminal.say("The secret is shown this once.")


@keys.command("delete")
@argument("key_id", metavar="id", help="as `list` shows it")
def keys_delete(context: Context, key_id: str) -> None:
    """Delete an access key."""
    with context.client() as client:
        asking.stepped_up(client, lambda: client.access_keys.delete(key_id))
    context.done(f"Deleted {key_id}.")
