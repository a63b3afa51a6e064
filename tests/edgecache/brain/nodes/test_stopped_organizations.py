"""Which organizations other operators' nodes do not serve: known to every brain, and after all."""

from pathlib import Path

import pytest

from edgecache.brain.nodes.stopped_organizations import StoppedOrganizations
from tests.edgecache.brain.brains import Brain, Rows, running, until

pytestmark = pytest.mark.anyio


def known_to(brain: Brain) -> StoppedOrganizations:
    return StoppedOrganizations(brain.database, brain.coherence)


async def test_every_brain_learns_of_a_decision_and_an_earlier_one_changes_nothing(
    brain: Brain, other: Brain
) -> None:
    here, there = known_to(brain), known_to(other)
    await there.refresh()
    await here.decide(1, 5, is_stopped=True)
    await until(lambda: 1 in there)
    assert 1 in here
    assert 2 not in there
    before = there.changes
    await there.decide(1, 4, is_stopped=False)
    await there.decide(1, 5, is_stopped=False)
    assert 1 in there
    assert there.changes == before
    await there.decide(1, 6, is_stopped=False)
    assert 1 not in there
    await until(lambda: 1 not in here)


async def test_a_brain_that_starts_or_lost_its_connection_reads_them_again(
    brain: Brain, rows: Rows, tmp_path: Path
) -> None:
    await known_to(brain).decide(1, 5, is_stopped=True)
    async with running(rows.url, tmp_path / "new") as new:
        late = known_to(new)
        await late.refresh()
        assert 1 in late
        # An announcement that never came.
        rows.run("UPDATE brain_organizationservice SET is_stopped = false")
        await late.refresh()
        assert 1 in late
        new.coherence._lose()
        await late.refresh()
        assert 1 not in late
