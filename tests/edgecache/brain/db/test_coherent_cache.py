"""Rows in memory: an announcement about one of them does not affect the others."""

import asyncio
from collections.abc import Callable

import pytest

from edgecache.brain.db.coherent_cache import CoherentCache

Row = tuple[int, str]


class Announcements:
    """Stands in for the connection to other brains: it passes on what the test announces."""

    is_current = True

    def subscribe(self, _topic: str, listener: Callable[[int], None]) -> None:
        """Keep the listener."""
        self.announce = listener

    def on_loss(self, forget: Callable[[], None]) -> None:
        """Keep the function."""
        self.lose = forget


class Rows:
    """A table, and what was read of it. Reads wait for the gate."""

    def __init__(self) -> None:
        self.announcements = Announcements()
        self.cache: CoherentCache[str, Row] = CoherentCache(
            self.announcements,  # type: ignore[arg-type] # it has what the cache uses
            "row",
            row_of=lambda row: row[0],
        )
        self.stored: dict[str, Row] = {"a": (1, "old"), "also a": (1, "old"), "b": (2, "old")}
        self.reads: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, key: str) -> Row | None:
        """Return a row from memory or from the table."""

        async def load() -> Row | None:
            self.reads.append(key)
            row = self.stored.get(key)
            await self.gate.wait()
            return row

        return await self.cache.get(key, load)

    async def begin(self, key: str) -> asyncio.Task[Row | None]:
        """Begin a read, which then waits for the gate."""
        self.gate.clear()
        reading = asyncio.create_task(self.get(key))
        # The caller's task begins another, which reads.
        for _ in range(3):
            await asyncio.sleep(0)
        assert self.reads[-1:] == [key]
        return reading


async def test_a_change_of_one_row_forgets_it_under_all_its_names_and_no_other() -> None:
    rows = Rows()
    for key in rows.stored:
        await rows.get(key)
    rows.announcements.announce(1)

    assert rows.cache.known("a") is None
    assert rows.cache.known("also a") is None
    assert rows.cache.known("b") == (2, "old")
    await rows.get("b")
    assert rows.reads.count("b") == 1


@pytest.mark.parametrize(("changed", "is_kept"), [(1, False), (2, True)])
async def test_a_row_that_changes_during_its_read_is_not_kept(changed: int, is_kept: bool) -> None:
    rows = Rows()
    reading = await rows.begin("a")
    rows.announcements.announce(changed)
    rows.gate.set()

    assert await reading == (1, "old")
    assert (rows.cache.known("a") is not None) is is_kept


async def test_who_asks_after_an_announcement_gets_nothing_that_was_read_before() -> None:
    rows = Rows()
    earlier = await rows.begin("a")
    rows.stored["a"] = (1, "new")
    rows.announcements.announce(1)
    later = await rows.begin("a")
    rows.gate.set()

    assert (await earlier, await later) == ((1, "old"), (1, "new"))
    assert rows.cache.known("a") == (1, "new")


async def test_a_name_that_another_row_has_now_is_forgotten_with_that_row() -> None:
    rows = Rows()
    earlier = await rows.begin("a")
    # An announcement of a third row: later callers read again.
    rows.announcements.announce(3)
    rows.stored["a"] = (2, "made anew")
    later = await rows.begin("a")
    rows.gate.set()
    await asyncio.gather(earlier, later)
    assert rows.cache.known("a") == (2, "made anew")
    await rows.get("b")

    rows.announcements.announce(1)
    rows.announcements.announce(2)
    assert rows.cache.known("a") is None
    assert rows.cache.known("b") is None


async def test_nothing_read_across_a_loss_is_kept() -> None:
    rows = Rows()
    reading = await rows.begin("a")
    rows.announcements.lose()
    rows.gate.set()

    assert await reading == (1, "old")
    assert rows.cache.known("a") is None
