"""Audits of delivery: test reads of what operators' nodes deliver, at random times.

The number of checks: a node that alters a share s of what it delivers passes n checks with the
probability (1 - s)^n. For 1 % that is below 5 % from 299 checks on.
"""

import asyncio
import secrets
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.audits import records
from edgecache.brain.audits.node_checks import (
    FORWARDED,
    CheckOutcome,
    CheckRoute,
    CheckTarget,
    NodeChecker,
    span_of,
)
from edgecache.brain.conf.operators import AuditSettings
from edgecache.brain.core.background import PeriodicTask
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.health import Health, is_too_much
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.http.outgoing import RequestFailed

log = structlog.get_logger(__name__)

HASH_BYTES: Final = 32
# Between two questions which nodes are due; checks themselves come at random times.
MIN_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 5.0
# That the checks of a node may read in a day.
LIMIT_BYTES: Final = 2**30
# Few, because the brain checks every byte that it forwards anyway.
FORWARDED_SHARE: Final = 1 / 16
RECHECKED: Final = "quarantined"
CHECKED_HEALTH: Final = frozenset((Health.ONLINE, Health.SUSPECT))
_random: Final = secrets.SystemRandom()


class Audits(PeriodicTask):
    """One brain's part of the checks; all brains share the plan."""

    def __init__(
        self,
        database: BrainDatabase,
        directory: Directory,
        nodes: KnownNodes,
        checker: NodeChecker,
        settings: AuditSettings,
    ) -> None:
        self._database = database
        self._directory = directory
        self._nodes = nodes
        self._checker = checker
        self._settings = settings
        super().__init__(
            "audits",
            self.round,
            lambda: asyncio.sleep(_random.uniform(MIN_PAUSE_S, MAX_PAUSE_S)),
        )

    async def start(self) -> None:
        """Start checking, unless it is switched off."""
        if self._settings.max_checks:
            await super().start()

    async def stop(self) -> None:
        """Stop, in the middle of a check if necessary."""
        await super().stop()
        await self._checker.stop()

    async def round(self) -> None:
        """Check each node that is due once. Raises DatabaseUnavailable."""
        due = await records.take_due(
            self._database,
            max_checks=self._settings.max_checks,
            limit_bytes=LIMIT_BYTES,
        )
        await asyncio.gather(*(self.check(node_id) for node_id in due))
        for node_id in await records.take_rechecks(self._database):
            await self.recheck(node_id)

    async def check(self, node_id: UUID) -> CheckOutcome | None:
        """Check a node once; None if it is not used now, or holds nothing.

        Wrong bytes cost the copy; too many of them the node. Raises DatabaseUnavailable.
        """
        row = self._nodes.get(node_id)
        if row is None or self._nodes.health(row) not in CHECKED_HEALTH:
            return None
        is_forwarded = _random.random() < FORWARDED_SHARE
        route = FORWARDED if is_forwarded else _random.choice(self._checker.direct)
        return await self._check(row, route, is_recheck=False)

    async def recheck(self, node_id: UUID) -> None:
        """Check a node in quarantine three times, over paths that were not at fault."""
        row = self._nodes.get(node_id)
        if row is None or row.status != RECHECKED:
            return
        failed = await records.failed_ways(self._database, node_id)
        known = [FORWARDED, *self._checker.direct]
        routes = [route for route in known if _name(route) not in failed] or known
        found = [
            await self._check(row, _random.choice(routes), is_recheck=True)
            for _ in range(records.RECHECKS)
        ]
        log.warning("node_rechecked", node_id=str(node_id), outcomes=[str(one) for one in found])

    async def _check(
        self, row: NodeRow, route: CheckRoute, *, is_recheck: bool
    ) -> CheckOutcome | None:
        target = await self._target(row)
        if target is None:
            return None
        try:
            request = await self._checker.prepare(route, target)
        except RequestFailed:
            return None
        await records.begin(self._database, request, is_recheck=is_recheck)
        outcome = await self._checker.check(request)
        await records.end(self._database, request.id, outcome)
        await self._follow(target, outcome, is_recheck=is_recheck)
        return outcome

    async def _target(self, row: NodeRow) -> CheckTarget | None:
        at = secrets.token_bytes(HASH_BYTES)
        drawn = await records.draw(self._database, row.id, row.organization_id, at)
        manifest = await self._directory.manifest(drawn.sha256) if drawn else None
        if manifest is None or not manifest.size:
            return None
        return CheckTarget(
            node_id=row.id,
            address=self._nodes.address_of(row),
            tenant=EnvironmentKey(drawn.organization_id, drawn.environment_pk),
            bucket_id=drawn.bucket_id,
            manifest=manifest,
            span=span_of(manifest),
        )

    async def _follow(
        self, target: CheckTarget, outcome: CheckOutcome, *, is_recheck: bool
    ) -> None:
        """Have a copy replaced that is wrong or gone, and judge the node."""
        node_id, sha256 = target.node_id, target.manifest.sha256
        if outcome is CheckOutcome.MISSING:
            self._nodes.suspect_copy(node_id, sha256)
        if outcome is not CheckOutcome.WRONG:
            return
        log.error("node_failed_look", node_id=str(node_id), sha256=sha256.hex())
        self._nodes.suspect_copy(node_id, sha256)
        if is_recheck:
            return
        bad, checks = await records.judge(self._database, node_id)
        if is_too_much(bad, checks):
            self._nodes.quarantine(node_id, f"wrong bytes for {bad} blobs in {checks} looks")


def _name(route: CheckRoute) -> tuple[str, str]:
    return str(route.path), route.vantage.local if route.vantage else ""
