"""What a worker has done since its start, for ``/metrics`` (Prometheus text)."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

PREFIX: Final = "zonal_worker_"
HELP: Final = {
    "reads": "Reads that were answered with bytes.",
    "read_bytes": "Bytes of those answers, as promised by their Content-Length.",
    "direct_bytes": "Bytes that clients with a ticket of their own took.",
    "stores": "Objects that were stored.",
    "stored_bytes": "Their bytes.",
    "misses": "Reads of objects that were not held.",
    "wrong_bytes": "Objects that were refused since they did not hash to their name.",
    "tickets_refused": "Requests with a refused ticket.",
    "corrupted_files": "Files that were found to be wrong, and removed.",
    "scrubbed_files": "Files that were hashed again.",
    "heartbeats": "Heartbeats that the brain answered.",
    "heartbeats_failed": "Heartbeats that it did not.",
    "receipts_accepted": "Receipts that the brain accepted.",
    "receipts_refused": "Receipts that it refused.",
    "jobs": "Jobs that were done.",
    "faults": "Requests that failed by a fault of the worker's own.",
}


class Counters:
    """Numbers that only rise."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter(dict.fromkeys(HELP, 0))
        self._lock = threading.Lock()

    def add(self, name: str, count: int = 1) -> None:
        """Count. name: one of ``HELP``."""
        with self._lock:
            self._counts[name] += count

    def add_read(self, length: int) -> None:
        with self._lock:
            self._counts["reads"] += 1
            self._counts["read_bytes"] += length

    def get(self, name: str) -> int:
        return self._counts[name]

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all as Prometheus reads it. gauges: name → (help, value)."""
        lines = []
        for name, count in self._counts.items():
            lines += _lines(f"{name}_total", "counter", HELP[name], count)
        for name, (text, value) in gauges.items():
            lines += _lines(name, "gauge", text, value)
        return "\n".join(lines) + "\n"


def _lines(name: str, kind: str, text: str, value: float) -> list[str]:
    full = PREFIX + name
    return [f"# HELP {full} {text}", f"# TYPE {full} {kind}", f"{full} {value:.15g}"]
