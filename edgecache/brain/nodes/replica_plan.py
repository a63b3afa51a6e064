"""The replica plan: which replicas of a blob to add and which to drop."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.placement import choose

TOPIC: Final = "repair"
# Of an object that is requested often.
HOT_REPLICAS: Final = 3


def request_check(change: AnnouncingTransaction, hashes: Iterable[bytes]) -> None:
    """Announce that the replicas of some blobs must be counted, by the brain that repairs.

    Called by everything that may leave a blob with too many or too few replicas.
    """
    for sha256 in hashes:
        change.announce(TOPIC, sha256.hex())


@dataclass(frozen=True, slots=True)
class ReplicaCounts:
    """The wanted numbers of replicas: of most objects, and of hot objects."""

    usual: int
    hot: int


@dataclass(frozen=True, slots=True)
class BlobReplicas:
    """One blob with its replicas.

    coming: nodes that were asked to fetch it.
    bucket_id: a bucket that refers to it, or None.
    organizations: owners of the buckets that refer to it.
    is_public: one of these buckets is public.
    failing: nodes that have repeatedly failed to fetch it; others are asked.
    """

    sha256: bytes
    size: int
    is_hot: bool
    holders: list[UUID]
    coming: list[UUID]
    bucket_id: int | None
    organizations: list[int]
    is_public: bool
    failing: list[UUID] = field(default_factory=list)

    def may_be_on(self, node: NodeRow) -> bool:
        """True if a node may hold it, for one of the buckets that refer to it."""
        return self.is_public or node.organization_id in {None, *self.organizations}


@dataclass(frozen=True, slots=True)
class ReplicaRequest:
    """A blob that the brain itself has to upload to nodes."""

    organization_id: int
    bucket_id: int
    sha256: bytes
    size: int
    copies: int


@dataclass(slots=True)
class ReplicaPlan:
    """Changes for some blobs: nodes that fetch one, nodes that drop one, uploads."""

    fetches: list[tuple[UUID, bytes]] = field(default_factory=list)
    drops: list[tuple[UUID, bytes]] = field(default_factory=list)
    requests: list[ReplicaRequest] = field(default_factory=list)

    def __bool__(self) -> bool:
        """True if there is anything to do."""
        return bool(self.fetches or self.drops or self.requests)


def plan(
    rows: Iterable[BlobReplicas],
    nodes: Mapping[UUID, NodeRow],
    online: frozenset[UUID],
    copies: ReplicaCounts,
) -> ReplicaPlan:
    """Return the plan for some blobs.

    nodes: those with readable copies, draining ones included; copies on other nodes count as lost.
    online: the active ones among them, which may take more.
    """
    made = ReplicaPlan()
    for row in rows:
        if row.bucket_id is not None:
            _plan_one(made, row, nodes, online, copies)
    return made


def _plan_one(
    made: ReplicaPlan,
    row: BlobReplicas,
    nodes: Mapping[UUID, NodeRow],
    online: frozenset[UUID],
    copies: ReplicaCounts,
) -> None:
    readable = [nodes[node_id] for node_id in row.holders if node_id in nodes]
    made.drops += [(node.id, row.sha256) for node in readable if not row.may_be_on(node)]
    readable = [node for node in readable if row.may_be_on(node)]
    good = {node.id for node in readable if node.status == "active"}
    coming = {node_id for node_id in row.coming if node_id in online} - good
    wanted = copies.hot if row.is_hot else copies.usual
    if len(good) + len(coming) < wanted:
        counted = good | coming
        usable = counted | online.difference(row.failing)
        able = [node for node in nodes.values() if node.id in usable]
        able = [node for node in able if row.may_be_on(node)]
        chosen = choose(row.sha256, able, wanted, held_by=counted)
        if readable:
            made.fetches += [(node.id, row.sha256) for node in chosen]
        elif chosen:
            owner = next(iter(row.organizations), 0)
            made.requests.append(
                ReplicaRequest(owner, row.bucket_id or 0, row.sha256, row.size, wanted)
            )
    elif len(good) > wanted and good <= online:
        best = choose(row.sha256, [nodes[node_id] for node_id in good], wanted)
        kept = {node.id for node in best}
        made.drops += [(node_id, row.sha256) for node_id in sorted(good - kept)]
