"""Placement: deterministic, weighted by capacity, spread over regions, and bounded."""

import hashlib
from collections import Counter
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.placement import choose, within_bound
from tests.edgecache.brain.nodes.rows import node

GIB = 2**30


def blob(number: int) -> bytes:
    """Return a hash."""
    return hashlib.sha256(str(number).encode()).digest()


@given(st.integers(0, 10**6), st.permutations([node(number) for number in range(1, 8)]))
@settings(max_examples=50)
def test_the_order_of_nodes_does_not_matter(number: int, nodes: list[NodeRow]) -> None:
    wanted = choose(blob(number), sorted(nodes, key=lambda row: row.id), 2)
    assert choose(blob(number), nodes, 2) == wanted


def test_removing_a_node_moves_only_its_own_objects() -> None:
    nodes = [node(number) for number in range(1, 6)]
    before = {n: choose(blob(n), nodes, 1)[0].id for n in range(500)}
    after = {n: choose(blob(n), nodes[1:], 1)[0].id for n in range(500)}

    moved = [n for n in before if before[n] != after[n]]
    assert moved
    assert all(before[n] == nodes[0].id for n in moved)


def test_a_node_of_three_times_the_capacity_gets_three_times_the_objects() -> None:
    nodes = [node(1, capacity_bytes=30 * GIB), node(2)]
    counts = Counter(choose(blob(n), nodes, 1)[0].id for n in range(4000))

    assert 2.5 < counts[UUID(int=1)] / counts[UUID(int=2)] < 3.5


def test_copies_are_in_different_regions_if_possible() -> None:
    nodes = [node(n, region="eu-central" if n < 4 else "us-east") for n in range(1, 7)]
    for n in range(200):
        assert len({row.region for row in choose(blob(n), nodes, 2)}) == 2


def test_copies_are_with_different_operators_if_possible() -> None:
    nodes = [node(n, region="eu-central", organization_id=7 if n < 4 else 8) for n in range(1, 7)]
    for n in range(200):
        assert len({row.organization_id for row in choose(blob(n), nodes, 2)}) == 2


def test_existing_copies_count() -> None:
    nodes = [node(n, region="eu-central" if n < 3 else "us-east") for n in range(1, 5)]

    added = choose(blob(1), nodes, 2, held_by={UUID(int=1)})

    assert len(added) == 1
    assert added[0].region == "us-east"
    assert choose(blob(1), nodes, 2, held_by={UUID(int=1), UUID(int=3)}) == []


def test_with_fewer_nodes_than_copies_all_are_used() -> None:
    assert len(choose(blob(1), [node(1)], 3)) == 1
    assert choose(blob(1), [], 3) == []


def test_a_node_a_quarter_fuller_than_average_gets_no_new_objects() -> None:
    full = node(1, used_bytes=9 * GIB)
    others = [node(2, used_bytes=5 * GIB), node(3, used_bytes=5 * GIB)]

    assert full not in within_bound([full, *others])
    assert all(full not in choose(blob(n), [full, *others], 1) for n in range(200))


def test_on_an_almost_empty_cluster_no_node_is_too_full() -> None:
    begun = node(1, used_bytes=GIB // 10)
    assert within_bound([begun, node(2)]) == [begun, node(2)]


def test_a_node_without_capacity_gets_no_objects() -> None:
    assert choose(blob(1), [node(1, capacity_bytes=0), node(2)], 1) == [node(2)]


def test_beside_a_large_empty_node_the_others_hold_further_copies() -> None:
    full = [node(1, used_bytes=6 * GIB), node(2, used_bytes=6 * GIB)]
    new = node(3, capacity_bytes=200 * GIB)

    for n in range(100):
        chosen = choose(blob(n), [*full, new], 2)
        assert len(chosen) == 2
        assert chosen[0] == new
