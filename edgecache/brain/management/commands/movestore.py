"""``manage.py movestore``: move all objects to another store, while they are read and written."""

import asyncio
import time
from argparse import ArgumentParser
from typing import Any, Final

from django.conf import settings
from django.db import OperationalError

from common.commands import CommandRefused, CommandResult, OpsCommand
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.stores.move import MoveProgress
from edgecache.brain.stores.reachable_stores import StoreError
from edgecache.brain.stores.relocation import (
    CannotMove,
    RelocationRequest,
    RelocationResult,
    relocate,
)

PROGRESS_EVERY_S: Final = 5.0


class Command(OpsCommand):
    """Move everything, or say what would be moved."""

    help = (
        "Move the objects of buckets without an origin to ZBRAIN_STORE_NEXT_URL, while they are "
        "read and written. An interrupted move is continued by the same command. Run it where the "
        "data directory is, if objects are there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Count, and change nothing.")
        parser.add_argument("--at-once", type=int, default=4, help="Copies at a time; default: 4.")
        parser.add_argument(
            "--wait",
            type=float,
            default=60.0,
            metavar="SECONDS",
            help="How long to wait for the brains' confirmation; default: 60.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        request = RelocationRequest(
            at_once=max(1, options["at_once"]),
            wait_s=options["wait"],
            is_dry=options["dry_run"],
            on_progress=self._progress(),
        )
        try:
            result = asyncio.run(relocate(settings.BRAIN, request))
        except CannotMove as exc:
            raise CommandRefused(exc.code, str(exc)) from exc
        except StoreError as exc:
            raise CommandRefused("store_not_configured", str(exc)) from exc
        except DatabaseUnavailable as exc:
            raise OperationalError("the database does not answer") from exc
        return _outcome(result, is_dry=options["dry_run"])

    def _progress(self) -> Any:
        said_at = time.monotonic()

        def say(progress: MoveProgress) -> None:
            nonlocal said_at
            if time.monotonic() - said_at >= PROGRESS_EVERY_S:
                said_at = time.monotonic()
                self.stderr.write(
                    f"{progress.moved} moved ({progress.moved_bytes} bytes), "
                    f"{progress.failed} failed"
                )

        return say


def _outcome(result: RelocationResult, *, is_dry: bool) -> CommandResult:
    before, left = result.before, result.left
    facts = {**result.facts(), "dry_run": is_dry}
    if is_dry:
        return CommandResult(
            facts,
            f"To move to {result.target}: {before.objects} objects and {before.parts} parts of "
            f"uploads, {before.bytes} bytes. {len(result.brains)} brains are ready.",
        )
    text = (
        f"Moved to {result.target}: {result.progress.moved} ({result.progress.moved_bytes} bytes)."
    )
    if not (result.stopped or left.objects + left.parts):
        return CommandResult(facts, f"{text} Nothing is left; the old bytes are deleted in a day.")
    reasons = "\n".join(result.progress.reasons)
    return CommandResult(
        facts,
        f"{text}\n{reasons}".rstrip(),
        f"{result.stopped} {left.objects} objects and {left.parts} parts are not moved: run the "
        "same command again.".lstrip(),
    )
