"""The hourly rounds."""

import asyncio
from typing import Any

import pytest

from edgecache.brain.upkeep import hourly
from edgecache.brain.upkeep.hourly import Upkeep
from tests.edgecache.brain.brains import Brain, Rows, until


class Part:
    """Some work of the round. lasts: forever, if it is begun."""

    def __init__(self, *, lasts: bool = False) -> None:
        self.rounds = 0
        self._lasts = lasts

    async def run(self, **_now: Any) -> None:
        self.rounds += 1
        if self._lasts:
            await asyncio.Event().wait()

    roll_up = write = run


async def test_a_lifecycle_of_hours_keeps_no_hour_from_being_metered(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hourly, "HOUR_S", 0.2)
    monkeypatch.setattr(hourly, "AFTER_S", 0.0)
    endless, logs, statistics = Part(lasts=True), Part(), Part()
    parts: list[Any] = [statistics, endless, logs]
    upkeep = Upkeep(brain.database, *parts)
    await upkeep.start()
    try:
        await until(lambda: endless.rounds)
        rows.run("DELETE FROM brain_storagehour")
        seen = logs.rounds
        await until(lambda: logs.rounds > seen + 1)
        assert (rows.count("storagehour"), endless.rounds) == (1, 1)
    finally:
        await upkeep.stop()
