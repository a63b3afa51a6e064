"""``manage.py purgecache``: take objects out of the cache."""

from argparse import ArgumentParser
from typing import Any

from edgecache.api import holdings
from edgecache.api.command import add_environment, scope_of
from platform_site.lib.commands import OpsCommand, Outcome, Refused


class Command(OpsCommand):
    """Purge keys, a prefix, or everything of one environment."""

    help = (
        "Take objects of one environment out of the cache; the origin keeps them. Keys and prefix "
        "are written bucket/key; given both, the union goes. With --preview nothing is purged, "
        "only counted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what to purge."""
        add_environment(parser)
        parser.add_argument("keys", nargs="*", metavar="BUCKET/KEY", help="Objects to purge.")
        parser.add_argument("--prefix", metavar="BUCKET/PREFIX", help="All that begin with this.")
        parser.add_argument("--all", action="store_true", help="All of the environment.")
        parser.add_argument("--preview", action="store_true", help="Only count.")

    def run(self, options: dict[str, Any]) -> Outcome:
        """Purge or count."""
        wanted = {name: options[name] for name in ("keys", "prefix", "all") if options[name]}
        if not wanted:
            raise Refused("nothing_named", "Name objects, --prefix or --all.")
        if options["preview"]:
            wanted["preview"] = True
        hit = holdings.purge(scope_of(options), wanted)
        text = "{objects_purged} objects, {bytes_freed} bytes, {nodes_affected} nodes.".format(
            **hit
        )
        return Outcome(hit, text)
