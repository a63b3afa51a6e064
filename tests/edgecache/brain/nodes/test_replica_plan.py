"""Replica plans: missing copies, excess copies, and copies on nodes that may not have them."""

from uuid import UUID

from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.replica_plan import BlobReplicas, ReplicaCounts, ReplicaPlan, plan
from tests.edgecache.brain.nodes.rows import node

COPIES = ReplicaCounts(usual=2, hot=3)
HASH = bytes(range(32))


def blob(*holders: int, coming: tuple[int, ...] = (), **changes: object) -> BlobReplicas:
    """Return bytes of a private bucket of organization 3."""
    fields: dict[str, object] = {
        "sha256": HASH,
        "size": 10,
        "is_hot": False,
        "holders": [UUID(int=number) for number in holders],
        "coming": [UUID(int=number) for number in coming],
        "bucket_id": 5,
        "organizations": [3],
        "is_public": False,
    }
    return BlobReplicas(**{**fields, **changes})  # type: ignore[arg-type]  # the tests' own values


def look(row: BlobReplicas, *nodes: NodeRow, away: tuple[int, ...] = ()) -> ReplicaPlan:
    """Return the plan for one blob. away: suspect nodes, which hold copies but get no new ones."""
    standing = {each.id: each for each in nodes}
    online = frozenset(
        each.id for each in nodes if each.status == "active" and each.id.int not in away
    )
    return plan([row], standing, online, COPIES)


def test_enough_copies_need_no_change() -> None:
    assert not look(blob(1, 2), node(1), node(2), node(3))


def test_a_missing_copy_is_fetched_by_another_node() -> None:
    made = look(blob(1, 9), node(1), node(2), node(3))
    assert [sha256 for _, sha256 in made.fetches] == [HASH]
    assert made.fetches[0][0].int in {2, 3}
    assert not made.drops


def test_a_pending_copy_counts() -> None:
    assert not look(blob(1, coming=(2,)), node(1), node(2), node(3))


def test_a_pending_copy_on_a_lost_node_does_not_count() -> None:
    made = look(blob(1, coming=(9,)), node(1), node(2))
    assert made.fetches == [(UUID(int=2), HASH)]


def test_where_a_node_never_fetches_its_copy_another_one_does() -> None:
    made = look(blob(1, failing=[UUID(int=2)]), node(1), node(2), node(3))
    assert made.fetches == [(UUID(int=3), HASH)]


def test_a_draining_node_is_read_from_but_does_not_count() -> None:
    made = look(blob(1), node(1, status="draining"), node(2))
    assert made.fetches == [(UUID(int=2), HASH)]


def test_without_a_readable_copy_the_brain_sends_the_bytes() -> None:
    made = look(blob(9), node(1), node(2))
    assert not made.fetches
    assert [(wish.sha256, wish.copies) for wish in made.requests] == [(HASH, 2)]


def test_unreferenced_bytes_are_not_replicated() -> None:
    assert not look(blob(bucket_id=None), node(1), node(2))


def test_an_excess_copy_is_deleted() -> None:
    made = look(blob(1, 2, 3), node(1), node(2), node(3))
    assert len(made.drops) == 1
    assert not made.fetches


def test_one_excess_copy_is_deleted_however_full_its_holders_are() -> None:
    full = [node(number, used_bytes=9 * 2**30) for number in (1, 2)]
    made = look(blob(1, 2, 3), *full, node(3))
    assert len(made.drops) == 1


def test_a_hot_object_keeps_its_third_copy() -> None:
    assert not look(blob(1, 2, 3, is_hot=True), node(1), node(2), node(3))


def test_a_hot_object_gets_its_third_copy() -> None:
    made = look(blob(1, 2, is_hot=True), node(1), node(2), node(3))
    assert made.fetches == [(UUID(int=3), HASH)]


def test_no_copy_is_deleted_while_a_holder_is_suspect() -> None:
    assert not look(blob(1, 2, 3), node(1), node(2), node(3), away=(3,))


def test_a_private_object_is_stored_on_platform_and_owner_nodes_only() -> None:
    made = look(blob(1), node(1), node(2, organization_id=4), node(3, organization_id=3))
    assert made.fetches == [(UUID(int=3), HASH)]


def test_a_private_object_is_deleted_from_a_foreign_node() -> None:
    made = look(blob(1, 2, 3), node(1), node(2), node(3, organization_id=4))
    assert made.drops == [(UUID(int=3), HASH)]


def test_a_public_object_may_be_on_a_foreign_node() -> None:
    assert not look(
        blob(1, 2, is_public=True), node(1, organization_id=4), node(2, organization_id=5)
    )


def test_a_foreign_node_is_not_a_source_for_a_private_object() -> None:
    made = look(blob(2), node(1), node(2, organization_id=4), node(3))
    assert made.drops == [(UUID(int=2), HASH)]
    assert not made.fetches
    assert made.requests
