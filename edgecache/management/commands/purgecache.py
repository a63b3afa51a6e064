"""``manage.py purgecache``: remove objects from the cache."""

from argparse import ArgumentParser
from typing import Any

from audit import trail
from common.commands import CommandRefused, CommandResult, OpsCommand
from edgecache.api import objects
from edgecache.api.audit_tags import CacheTag
from edgecache.management.arguments import add_environment, scope_of
from environments import environments


class Command(OpsCommand):
    """Purge keys, a prefix, tags, or everything of one environment."""

    help = (
        "Remove objects of one environment from the cache; the origin keeps them. What is named is "
        "purged together."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_environment(parser)
        parser.add_argument("keys", nargs="*", metavar="BUCKET/KEY", help="Objects to purge.")
        parser.add_argument("--prefix", metavar="BUCKET/PREFIX", help="All that begin with this.")
        parser.add_argument(
            "--tag",
            action="append",
            dest="tags",
            metavar="BUCKET/TAG",
            help="All that have this tag; may be repeated.",
        )
        parser.add_argument("--all", action="store_true", help="All of the environment.")
        parser.add_argument(
            "--preview", "--dry-run", action="store_true", dest="preview", help="Only count."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        body = {name: options[name] for name in ("keys", "prefix", "tags", "all") if options[name]}
        if not body:
            raise CommandRefused("nothing_named", "Name objects, --prefix, --tag or --all.")
        if options["preview"]:
            body["preview"] = True
        scope = scope_of(options)
        counts = objects.purge(scope, body)
        if not options["preview"]:
            trail.add(
                None,
                CacheTag.CLI_CACHE_PURGE,
                organization_id=scope.organization_id,
                environment_id=environments.find(
                    scope.organization_id, options["environment"]
                ).slug,
                actor="command",
                data=counts,
            )
        text = "{objects_purged} objects, {bytes_freed} bytes, {nodes_affected} nodes.".format(
            **counts
        )
        return CommandResult(counts, text)
