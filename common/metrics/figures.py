"""Metrics that a scrape reads from the database, for all processes and machines together."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator

import structlog
from django.db import DatabaseError, connection
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from common.machine.reasons import reason
from common.scoping import unscoped

log = structlog.get_logger(__name__)


class GaugeGroup:
    """A group of gauges, read at most once per ``keep_s`` by each process.

    read: queries the database; its queries must be bounded.
    """

    def __init__(
        self, name: str, read: Callable[[], Iterable[GaugeMetricFamily]], *, keep_s: float
    ) -> None:
        self.name = name
        self._read = read
        self._keep_s = keep_s
        self._lock = threading.Lock()
        self._kept: list[GaugeMetricFamily] | None = None
        self._until = 0.0

    def gauges(self) -> list[GaugeMetricFamily] | None:
        """Return the gauges; None while the database is unreachable."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._kept = self._try()
                self._until = time.monotonic() + self._keep_s
            return self._kept

    def forget(self) -> None:
        """Clear the cached values."""
        self._until = 0.0

    @unscoped("figures of the installation")
    def _try(self) -> list[GaugeMetricFamily] | None:
        try:
            return list(self._read())
        except DatabaseError as exc:
            log.warning("figures_not_read", subject=self.name, error=reason(exc))
            connection.close()
            return None


class Figures(Collector):
    """The gauges of several groups, and whether each group could be read."""

    def __init__(self, *groups: GaugeGroup) -> None:
        self._groups = groups

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges."""
        readable = GaugeMetricFamily(
            "zonal_figures_readable",
            "1 if the figures of a subject could be read from the database, else 0.",
            labels=["subject"],
        )
        for group in self._groups:
            gauges = group.gauges()
            readable.add_metric([group.name], 0 if gauges is None else 1)
            yield from gauges or ()
        yield readable


def gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    """Return a gauge without labels."""
    return GaugeMetricFamily(name, meaning, value=value)
