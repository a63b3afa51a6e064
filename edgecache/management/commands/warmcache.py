"""``manage.py warmcache``: fetch objects into the cache before anyone reads them."""

import sys
from argparse import ArgumentParser
from typing import Any, Final

from common.commands import CommandResult, OpsCommand
from edgecache.api import objects
from edgecache.api.errors import CacheUnavailable
from edgecache.management.arguments import add_environment, scope_of

BATCH: Final = 20


class Command(OpsCommand):
    """Fetch keys from their origins into the cache."""

    help = (
        "Fetch objects of one environment from their origins onto the nodes that do not hold them "
        "yet. `-` reads keys from standard input, one per line."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_environment(parser)
        parser.add_argument("keys", nargs="+", metavar="BUCKET/KEY", help="Objects to fetch.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        scope = scope_of(options)
        keys = options["keys"]
        if keys == ["-"]:
            keys = [line.rstrip("\n") for line in sys.stdin if line.strip()]
        warmed = failed = 0
        unfinished = ""
        for start in range(0, len(keys), BATCH):
            try:
                done = objects.warm(scope, keys[start : start + BATCH])
            except CacheUnavailable as exc:
                if not start:
                    raise
                unfinished = f"{exc.title} {len(keys) - start} were not asked for."
                break
            warmed += done["warmed"]
            failed += done["failed"]
            self.stderr.write(f"{warmed + failed} of {len(keys)}")
        if failed:
            unfinished = f"{failed} could not be fetched. {unfinished}".rstrip()
        facts = {"warmed": warmed, "failed": failed}
        return CommandResult(facts, f"{warmed} fetched, {failed} failed.", unfinished)
