"""What the processes of one brain tell each other once a second, over the memory that they share.

Bodies that they receive count in the others' budget of the disk, which is one for all of them. What
they have served is added up, so that any of them can answer for the brain.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from edgecache.brain.core.background import PeriodicTask
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.metering.latencies import Latencies
from edgecache.brain.metering.meters import Measure, Meters, Traffic
from edgecache.brain.siblings.mailboxes import Mailbox
from edgecache.brain.siblings.process_context import ProcessContext

EVERY_S: Final = 1.0
# Organizations whose unfinished bodies are reported: those with the most bytes.
MAX_ORGANIZATIONS: Final = 1000
# A count of all parts is not repeated before this many times as long as it took.
COUNT_PAUSE: Final = 10


class Siblings(PeriodicTask):
    """The reports of this brain's processes."""

    def __init__(
        self,
        context: ProcessContext,
        coherence: Coherence,
        data_directory: DataDirectory,
        meters: Meters,
        count_parts: Callable[[], Awaitable[None]],
    ) -> None:
        """context: this process's. count_parts: counts the parts of uploads of all processes."""
        self._memory = context.memory
        self._number = context.number
        self._mailbox = Mailbox(
            context.mailboxes,
            context.number,
            is_serving=context.memory.is_serving,
            work=self._publish_all,
            # Its confirmations are not waited for any more.
            on_ended=coherence.end_peer,
        )
        self._coherence = coherence
        self._data_directory = data_directory
        self._meters = meters
        self._count_parts = count_parts
        # What a former process in this place has counted: counters only rise.
        self._former = Traffic()
        self._former_copies = 0
        self._others: dict[int, Any] = {}
        self._parts_elsewhere = 0
        self._count_after = 0.0
        super().__init__("siblings", self.round, lambda: asyncio.sleep(EVERY_S))

    async def start(self) -> None:
        """Go on where a former process in this place has ended."""
        former = self._memory.read_report(self._number)
        if former is not None:
            self._former = _traffic(former)
            self._former_copies = former["copies"]
        if self._memory.processes > 1:
            self._data_directory.budget.allowance = 0
        with contextlib.suppress(DatabaseUnavailable):
            await self.round()
        await self._mailbox.start()
        await super().start()

    async def stop(self) -> None:
        """Report and answer no more."""
        await super().stop()
        await self._mailbox.stop()

    async def flush_others(self) -> None:
        """Have the other processes write what they have counted; return when that is done.

        One that does not within a second writes it later, as every ten seconds.
        """
        await self._mailbox.ask_all()

    async def round(self) -> None:
        """Take in what the others have reported, and report. Raises DatabaseUnavailable."""
        self._memory.note_seen(self._number)
        self._read()
        others = self._others.values()
        other_processes: dict[Any, int] = {}
        for report in others:
            for organization_id, size in report["staged"]:
                other_processes[organization_id] = other_processes.get(organization_id, 0) + size
        budget = self._data_directory.budget
        budget.count_other_processes(other_processes)
        self._data_directory.copies.set_other_processes(sum(report["copies"] for report in others))
        knows_parts = await self._knows_parts(sum(report["parts"] for report in others))
        if knows_parts and self._memory.processes > 1:
            allowances = sum(report["allowance"] for report in others)
            budget.divide(self._memory.processes, allowances=allowances)
        # Last: the others know of an allowance before it is used.
        self._publish()

    async def _knows_parts(self, taken: int) -> bool:
        """Count all parts if others have taken some; False if it is too early to count again.

        taken: bytes of parts that the others have taken, in all. Raises DatabaseUnavailable.
        """
        began = time.monotonic()
        if taken == self._parts_elsewhere:
            return True
        if began < self._count_after:
            return False
        await self._count_parts()
        self._parts_elsewhere = taken
        ended = time.monotonic()
        self._count_after = ended + COUNT_PAUSE * (ended - began)
        return True

    async def traffic(self) -> Traffic:
        """Return what all processes have served until now; a process that hangs, until it did."""
        await self._mailbox.ask_all()
        self._read()
        found = self._own()
        for report in self._others.values():
            found.add(_traffic(report))
        return found

    async def _publish_all(self) -> None:
        self._publish()
        await self._meters.flush()

    def _publish(self) -> None:
        self._memory.write_report(self._number, self._report())

    def _read(self) -> None:
        for number in range(self._memory.processes):
            report = self._memory.read_report(number) if number != self._number else None
            if report is not None:
                self._others[number] = report

    def _own(self) -> Traffic:
        found = self._meters.traffic()
        found.add(self._former)
        return found

    def _report(self) -> dict[str, Any]:
        own = self._own()
        staged = sorted(self._data_directory.budget.staged(), key=lambda row: -row[1])
        return {
            "brain": self._coherence.brain_id.hex,
            "staged": staged[:MAX_ORGANIZATIONS],
            "parts": self._data_directory.budget.parts_taken,
            "allowance": self._data_directory.budget.allowance if self._memory.processes > 1 else 0,
            "copies": self._former_copies + self._data_directory.copies.change,
            "repeated": own.repeated,
            "hits": own.measure.hits,
            "misses": own.measure.misses,
            "bytes_served": own.measure.bytes_served,
            "latencies": own.measure.latencies.as_json(),
        }


def _traffic(report: dict[str, Any]) -> Traffic:
    measure = Measure(latencies=Latencies.from_json(report["latencies"]))
    measure.hits, measure.misses = report["hits"], report["misses"]
    measure.bytes_served = report["bytes_served"]
    return Traffic(measure, report["repeated"])
