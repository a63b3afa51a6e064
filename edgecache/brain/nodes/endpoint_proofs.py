"""Proof that an organization's node is reachable at its endpoint: a MAC under its secret.

Requested when a pending node's heartbeat arrives, so that staff sees a proved endpoint.
"""

import time
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.nodes import node_rows
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.endpoints import is_proof, new_nonce
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.http.outgoing import RequestFailed
from edgecache.protocol.credentials import proof

log = structlog.get_logger(__name__)

AGAIN_AFTER_S: Final = 30.0


class EndpointProofs:
    """Requests proofs, at most twice a minute for each node, to be useless for attacks."""

    def __init__(self, coherence: Coherence, nodes: KnownNodes, client: WorkerClient) -> None:
        """Request nothing yet."""
        self._coherence = coherence
        self._nodes = nodes
        self._client = client
        self._asked_at: dict[UUID, float] = {}
        self._tasks = BackgroundTasks()

    async def stop(self) -> None:
        await self._tasks.stop()

    def ask_for(self, row: NodeRow) -> None:
        """Request a pending node's proof, unless it is proved or was asked a moment ago."""
        now = time.monotonic()
        if row.status != "pending" or row.proved_at is not None:
            return
        if now - self._asked_at.get(row.id, -AGAIN_AFTER_S) < AGAIN_AFTER_S:
            return
        self._asked_at = {k: at for k, at in self._asked_at.items() if now - at < AGAIN_AFTER_S}
        self._asked_at[row.id] = now
        self._tasks.add(self._ask(row))

    async def _ask(self, row: NodeRow) -> None:
        nonce = new_nonce()
        try:
            given = await self._client.prove(self._nodes.address_of(row), nonce)
            if not is_proof(given, proof(row.secret_hash, row.id, nonce)):
                log.warning("node_not_proved", node_id=str(row.id), reason="proof_wrong")
                return
            async with self._coherence.transaction(wait_for_acks=False) as change:
                await change.run("UPDATE brain_node SET proved_at = now() WHERE id = %s", [row.id])
                change.announce(node_rows.TOPIC, row.id.hex)
        except RequestFailed as failure:
            log.warning("node_not_proved", node_id=str(row.id), reason=failure.reason)
        except DatabaseUnavailable:
            log.warning("node_not_proved", node_id=str(row.id), reason="database_away")
        else:
            log.info("node_proved", node_id=str(row.id))
