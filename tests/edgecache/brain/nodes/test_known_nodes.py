"""The registry: which addresses are guarded."""

from dataclasses import asdict
from unittest.mock import AsyncMock, Mock

import pytest

from edgecache.brain.nodes.known_nodes import KnownNodes
from tests.edgecache.brain.nodes.rows import node

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("guards", [True, False])
async def test_only_nodes_of_operators_are_guarded_and_only_in_production(guards: bool) -> None:
    own, foreign = node(1), node(2, organization_id=3)
    rows = [Mock(_asdict=Mock(return_value=asdict(each))) for each in (own, foreign)]
    database = Mock(all=AsyncMock(side_effect=[[], rows]))
    nodes = KnownNodes(database, Mock(), Mock(), interval_s=10, guards_operators=guards)
    await nodes.refresh()

    assert [nodes.is_guarded(each.id) for each in (own, foreign)] == [False, guards]
    assert nodes.is_guarded(node(9).id) is False
