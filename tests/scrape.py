"""Read /metrics as Prometheus does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from billing.metrics import LEDGER
from common.metrics.connections import DATABASE
from common.metrics.tasks import TASKS
from operations.backup.records import BACKUPS
from outbox.metrics import WEBHOOKS
from tests.cast import Caller

Labels = frozenset[tuple[str, str]]


@dataclass
class Scrape:
    """The samples of one scrape."""

    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        """Return a sample; 0 without one."""
        return self.samples.get((name, frozenset(labels.items())), 0.0)

    @property
    def names(self) -> set[str]:
        """The samples' names."""
        return {name for name, _ in self.samples}


def parse(text: str) -> Scrape:
    """Return the samples of an exposition."""
    scrape = Scrape()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            scrape.samples[sample.name, frozenset(sample.labels.items())] = sample.value
    return scrape


def scrape() -> Scrape:
    """Return what /metrics shows now; nothing that an earlier scrape kept."""
    for subject in (TASKS, DATABASE, LEDGER, BACKUPS, WEBHOOKS):
        subject.forget()
    answer = Caller().get("/metrics")
    assert answer.status == 200
    return parse(answer.raw.content.decode())


@dataclass
class Growth:
    """By how much samples grew in a block."""

    before: Scrape
    after: Scrape = field(default_factory=Scrape)

    def of(self, name: str, **labels: str) -> float:
        """Return by how much one sample grew."""
        return self.after.value(name, **labels) - self.before.value(name, **labels)


@contextmanager
def growth() -> Iterator[Growth]:
    """Compare the metrics before and after the block: those of a process only rise."""
    seen = Growth(scrape())
    yield seen
    seen.after = scrape()
