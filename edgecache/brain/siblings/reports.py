"""What the processes of one brain tell each other once a second, over the memory that they share.

Bodies that they receive count in the others' budget of the disk, which is one for all of them. What
they have served is added up, so that any of them can answer for the brain.
"""

import asyncio
from typing import Any, Final

from edgecache.brain.background import PeriodicTask
from edgecache.brain.metering.latencies import Latencies
from edgecache.brain.metering.meters import Measure, Meters, Traffic
from edgecache.brain.siblings.mailboxes import Mailbox, Mailboxes
from edgecache.brain.siblings.shared_memory import SharedMemory
from edgecache.brain.storage.staging import Staging

EVERY_S: Final = 1.0
# Organizations whose unfinished bodies are reported: those with the most bytes.
LARGEST: Final = 1000


class Siblings(PeriodicTask):
    """The reports of this brain's processes."""

    def __init__(
        self,
        number: int,
        memory: SharedMemory,
        mailboxes: Mailboxes,
        staging: Staging,
        meters: Meters,
    ) -> None:
        """number: this process's place."""
        self._memory = memory
        self._number = number
        self._mailbox = Mailbox(mailboxes, number, is_serving=memory.is_serving, work=meters.flush)
        self._staging = staging
        self._meters = meters
        # What a former process in this place has counted: counters only rise.
        self._former = Traffic()
        self._former_copies = 0
        self._others: dict[int, Any] = {}
        super().__init__("siblings", self.round, lambda: asyncio.sleep(EVERY_S))

    async def start(self) -> None:
        """Go on where a former process in this place has ended."""
        former = self._memory.read_report(self._number)
        if former is not None:
            self._former = _traffic(former)
            self._former_copies = former["copies"]
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
        """Report, and take in what the others have reported."""
        self._memory.write_report(self._number, self._report())
        for number in range(self._memory.processes):
            report = self._memory.read_report(number) if number != self._number else None
            if report is not None:
                self._others[number] = report
        elsewhere: dict[Any, int] = {}
        for report in self._others.values():
            for payer, size in report["staged"]:
                elsewhere[payer] = elsewhere.get(payer, 0) + size
        self._staging.budget.count_elsewhere(elsewhere)
        copies = sum(report["copies"] for report in self._others.values())
        self._staging.copies.note_elsewhere(copies)

    def traffic(self) -> Traffic:
        """Return what all processes have served; the others' numbers are a second old at most."""
        found = self._own()
        for report in self._others.values():
            found.add(_traffic(report))
        return found

    def _own(self) -> Traffic:
        found = self._meters.traffic()
        found.add(self._former)
        return found

    def _report(self) -> dict[str, Any]:
        own = self._own()
        staged = sorted(self._staging.budget.staged(), key=lambda row: -row[1])
        return {
            "staged": staged[:LARGEST],
            "copies": self._former_copies + self._staging.copies.change,
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
