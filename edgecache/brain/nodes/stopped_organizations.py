"""Organizations that other operators' nodes do not serve: no credits, or a spend cap reached.

The platform decides and announces it (``PUT /v1/organizations/{id}/service``); a later decision
has a higher version, so that calls may arrive twice and in any order.
"""

from typing import Final

from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase

TOPIC: Final = "service"

DECIDE: Final = (
    "INSERT INTO brain_organizationservice AS s (organization_id, is_stopped, version)"
    " VALUES (%s, %s, %s) ON CONFLICT (organization_id) DO UPDATE"
    " SET is_stopped = excluded.is_stopped, version = excluded.version"
    " WHERE s.version < excluded.version"
)
ALL: Final = "SELECT organization_id FROM brain_organizationservice WHERE is_stopped"


class StoppedOrganizations:
    """All stopped organizations, in one brain's memory (about 60 bytes each).

    While the database is unreachable the last known ones apply.
    """

    def __init__(self, database: BrainDatabase, coherence: Coherence) -> None:
        self._database = database
        self._coherence = coherence
        self._ids: set[int] = set()
        self._is_complete = False
        # Rises with each announcement and with each change of the set.
        self.changes = 0
        coherence.subscribe(TOPIC, self._on_change)
        coherence.on_loss(self._on_loss)

    def __contains__(self, organization_id: int) -> bool:
        """True if other operators' nodes serve none of this organization's objects."""
        return organization_id in self._ids

    async def decide(self, organization_id: int, version: int, *, is_stopped: bool) -> None:
        """Store the platform's decision unless a later one is known. Raises DatabaseUnavailable."""
        async with self._coherence.transaction() as change:
            if await change.run(DECIDE, [organization_id, is_stopped, version]):
                change.announce(TOPIC, organization_id, int(is_stopped))

    async def refresh(self) -> None:
        """Read all again if announcements may have been missed. Raises DatabaseUnavailable."""
        if self._is_complete:
            return
        before = self.changes
        rows = await self._database.all(ALL)
        # An announcement during the read may be newer than these rows: read again next time.
        self._is_complete = self._coherence.is_current and before == self.changes
        found = {row.organization_id for row in rows}
        if found != self._ids:
            self._ids = found
            self.changes += 1

    def _on_change(self, organization_id: int, is_stopped: int) -> None:
        self.changes += 1
        if is_stopped:
            self._ids.add(organization_id)
        else:
            self._ids.discard(organization_id)

    def _on_loss(self) -> None:
        self._is_complete = False
        self.changes += 1
