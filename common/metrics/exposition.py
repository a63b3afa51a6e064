"""The metrics of all web processes as text, and the merged counters of ended processes.

Each process writes its values to files of its own in PROMETHEUS_MULTIPROC_DIR. gunicorn replaces
processes for as long as it runs; were their files kept, each scrape would read more of them.
"""

import fcntl
import os
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from prometheus_client import REGISTRY as PROCESS_REGISTRY
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.registry import Collector

# Metrics that only increase; others end with their process.
RISING_FILE: Final = re.compile(r"(counter|histogram)_(\d+)\.db")
LOCK_NAME: Final = "lock"


def exposition(*collectors: Collector) -> bytes:
    """Return the metrics of all web processes and of the collectors, in Prometheus' text format."""
    shared = CollectorRegistry()
    for collector in collectors:
        shared.register(collector)
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not folder:
        return generate_latest(PROCESS_REGISTRY) + generate_latest(shared)
    multiprocess.MultiProcessCollector(shared)  # type: ignore[no-untyped-call]  # untyped library
    with _locked(Path(folder), fcntl.LOCK_SH):
        return generate_latest(shared)


def forget_ended(folder: Path, *, alive: Container[int]) -> None:
    """Merge the files of ended processes into one, and remove them.

    Does nothing during a scrape, which would see values twice or not at all; Prometheus would
    interpret that as a restart. The next call does it then.
    """
    try:
        with _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for file in folder.iterdir():
                match = RISING_FILE.fullmatch(file.name)
                if match is not None and int(match[2]) not in alive:
                    _add(file, to=folder / f"{match[1]}_ended.db")
                    file.unlink()
    except BlockingIOError:
        return


def _add(file: Path, *, to: Path) -> None:
    # Any: the library's files have no types.
    sums: Any = MmapedDict(str(to))  # type: ignore[no-untyped-call]  # untyped library
    values: Any = MmapedDict.read_all_values_from_file(str(file))  # type: ignore[no-untyped-call]  # untyped library
    for key, value, _timestamp, _position in values:
        sums.write_value(key, sums.read_value(key)[0] + value, 0.0)
    sums.close()


@contextmanager
def _locked(folder: Path, operation: int) -> Iterator[None]:
    with (folder / LOCK_NAME).open("w") as file:
        fcntl.flock(file, operation)
        yield
