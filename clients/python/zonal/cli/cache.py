"""`zonal cache`: buckets, objects, keys of the object API, purges."""

import sys
from argparse import Namespace
from dataclasses import asdict

from zonal.cli import asking, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.describe import size


def status(context: Context, _arguments: Namespace) -> None:
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


def buckets_list(context: Context, _arguments: Namespace) -> None:
    """Show the environment's buckets."""
    with context.client() as client:
        context.show_list(
            client.buckets.list(), ["name", "is_public", "origin", "public_name", "created_at"]
        )


def buckets_create(context: Context, arguments: Namespace) -> None:
    """Make a bucket."""
    with context.client() as client:
        made = asking.stepped_up(
            client,
            lambda: client.buckets.create(
                arguments.name, is_public=arguments.public or None, origin=arguments.origin
            ),
        )
    context.done(f"Made {made.name}.", made)


def buckets_delete(context: Context, arguments: Namespace) -> None:
    """Delete an empty bucket."""
    with context.client() as client:
        asking.stepped_up(client, lambda: client.buckets.delete(arguments.name))
    context.done(f"Deleted {arguments.name}.")


def objects(context: Context, arguments: Namespace) -> None:
    """Show the objects of a bucket."""
    with context.client() as client:
        context.show_list(
            client.buckets.objects(arguments.bucket, prefix=arguments.prefix),
            ["key", "size", "last_modified", "etag"],
        )


def purge(context: Context, arguments: Namespace) -> None:
    """Remove cached copies; the objects stay at their origin."""
    if not (arguments.key or arguments.prefix or arguments.all):
        raise UsageError("Say what to purge: --key, --prefix or --all.")
    if arguments.all and not arguments.preview:
        asking.confirm("Purge everything that the environment has cached?", is_sure=arguments.yes)
    with context.client() as client:
        purged = client.cache.purge(
            keys=arguments.key,
            prefix=arguments.prefix,
            everything=arguments.all,
            preview=arguments.preview,
        )
    verb = "Would purge" if arguments.preview else "Purged"
    context.done(f"{verb} {purged.objects_purged} objects, {size(purged.bytes_freed)}.", purged)


def keys_list(context: Context, _arguments: Namespace) -> None:
    """Show access keys of the object API."""
    with context.client() as client:
        context.show_list(
            client.access_keys.list(), ["access_key_id", "label", "access", "last_used_at"]
        )


def keys_create(context: Context, arguments: Namespace) -> None:
    """Make an access key for S3 clients."""
    with context.client() as client:
        made = asking.stepped_up(
            client, lambda: client.access_keys.create(arguments.label, access=arguments.access)
        )
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


def keys_delete(context: Context, arguments: Namespace) -> None:
    """Delete an access key."""
    with context.client() as client:
        asking.stepped_up(client, lambda: client.access_keys.delete(arguments.id))
    context.done(f"Deleted {arguments.id}.")
