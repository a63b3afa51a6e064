"""This brain's counters in Prometheus' text format, labelled with its id.

Written by hand: a registry would hold a second copy of every number. Source: "Exposition formats".
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

from edgecache.brain.metering.latencies import Latencies, middle_of
from edgecache.brain.metering.meters import Meters
from edgecache.brain.nodes.health import Health
from edgecache.brain.nodes.known_nodes import KnownNodes

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
US_PER_S: Final = 1_000_000
HEALTHS: Final = (*Health, "pending", "quarantined")

Sample = tuple[str, dict[str, str], float]
# Name, kind, meaning, samples.
Family = tuple[str, str, str, list[Sample]]


def text(nodes: KnownNodes, meters: Meters, brain_id: UUID) -> bytes:
    brain = str(brain_id)
    lines = [
        line
        for name, kind, meaning, samples in (*_traffic(meters), *_nodes(nodes))
        for line in _family(name, kind, meaning, samples, brain)
    ]
    return ("\n".join(lines) + "\n").encode()


def _traffic(meters: Meters) -> Iterator[Family]:
    total = meters.since_start()
    counted = (
        ("hits", "Answers that needed no origin.", total.hits),
        ("misses", "Answers that needed the origin.", total.misses),
        ("served_bytes", "Bytes of objects that left for clients.", total.bytes_served),
    )
    for name, meaning, value in counted:
        yield f"zonal_cache_{name}_total", "counter", meaning, [("", {}, value)]
    yield (
        "zonal_cache_first_byte_seconds",
        "histogram",
        "Time to the first byte of an object.",
        _histogram(total.latencies),
    )


def _nodes(nodes: KnownNodes) -> Iterator[Family]:
    rows = nodes.nodes()
    healths = [nodes.health(row) for row in rows]
    counts: list[Sample] = [("", {"health": str(h)}, healths.count(h)) for h in HEALTHS]
    yield "zonal_cache_nodes", "gauge", "Nodes by health.", counts
    fields = (
        ("used_bytes", "Bytes stored.", lambda row: row.used_bytes),
        ("capacity_bytes", "Bytes that may be stored.", lambda row: row.capacity_bytes),
        ("load", "Load as the node says, 1 is all it can.", lambda row: row.load),
        (
            "latency_seconds",
            "Mean time to its first byte.",
            lambda row: nodes.statistics(row.id).latency_s,
        ),
        (
            "wrong_blobs",
            "Blobs of the last hour's checks that were wrong.",
            lambda row: nodes.statistics(row.id).checks.count(time.monotonic())[0],
        ),
    )
    for name, meaning, value in fields:
        samples = [("", {"node": str(r.id), "region": r.region}, value(r)) for r in rows]
        yield f"zonal_cache_node_{name}", "gauge", meaning, samples


def _histogram(latencies: Latencies) -> list[Sample]:
    counts = sorted((middle_of(bucket) / US_PER_S, n) for bucket, n in latencies.counts.items())
    samples: list[Sample] = [
        ("_bucket", {"le": str(bound)}, sum(n for middle, n in counts if middle <= bound))
        for bound in BOUNDS_S
    ]
    samples.append(("_bucket", {"le": "+Inf"}, latencies.count))
    samples.append(("_sum", {}, latencies.total_us / US_PER_S))
    samples.append(("_count", {}, latencies.count))
    return samples


def _family(
    name: str, kind: str, meaning: str, samples: Iterable[Sample], brain: str
) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for suffix, labels, value in samples:
        # Labels are ids, regions and words of ours: nothing in them needs escaping.
        all_labels = {"brain": brain, **labels}
        labelled = ",".join(f'{label}="{word}"' for label, word in all_labels.items())
        yield f"{name}{suffix}{{{labelled}}} {value}"
