"""``make soak``: mixed load on a whole installation, whose processes are killed at random.

Ends with status 1 if a promise is broken: an answer that is neither expected nor 429 or 503, a
connection that breaks while nothing was killed, an acknowledged write that is lost, a ledger that
does not add up, or memory and connections that grow.
"""

import argparse
import random
import secrets
import statistics
import sys
import time
from collections import defaultdict
from typing import Final

from benchmarks.soak.callers import Load
from benchmarks.soak.installation import Installation, Sample

SAMPLE_S: Final = 15.0
# From one kill to the next, when all is well again.
PAUSE_S: Final = (15.0, 45.0)
WELL_S: Final = 120.0
# Of the last third of the time over the second; the first fills caches.
MOST_GROWTH: Final = 1.2
# Below it, growth is noise.
SMALL_MIB: Final = 20
# Of the faults.
SHOWN: Final = 50


def main() -> int:
    """Run the soak; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with Installation() as installation:
        load = Load(installation)
        # Of its own, so that a seed repeats the kills.
        chance = random.Random(options.seed)  # noqa: S311 - a load
        with load:
            samples = _soak(installation, load, chance, options.minutes * 60.0)
        faults = [*load.faults, *load.lost(), *_growth(samples), *_ledger(installation)]
    print(load.report())
    print(f"{len(faults)} faults", *faults[:SHOWN], sep="\n")
    return 1 if faults else 0


def _soak(
    installation: Installation, load: Load, chance: random.Random, seconds: float
) -> list[Sample]:
    """Kill and sample until the time is over; all is well at the end."""
    began, samples = time.monotonic(), list[Sample]()
    next_sample, next_kill = began, began + PAUSE_S[1]
    while time.monotonic() < began + seconds:
        now = time.monotonic()
        if now >= next_sample:
            samples.append(installation.sample())
            print(f"{now - began:5.0f} s: {samples[-1]}; {load.count} answers", flush=True)
            next_sample = now + SAMPLE_S
        if now >= next_kill:
            with load.trouble():
                print(f"{now - began:5.0f} s: killed {installation.kill_one(chance)}", flush=True)
                print(
                    f"        well after {installation.wait_until_well(WELL_S):.1f} s", flush=True
                )
            next_kill = time.monotonic() + chance.uniform(*PAUSE_S)
        time.sleep(0.2)
    return samples


def _growth(samples: list[Sample]) -> list[str]:
    """Return what grew from the second third of the time to the last."""
    third = len(samples) // 3
    rows = defaultdict[str, list[list[float]]](lambda: [[], []])
    for at, sample in enumerate(samples[third:]):
        for name, value in sample.values.items():
            rows[name][at >= third].append(value)
    found = []
    for name, (before, after) in rows.items():
        if not before or not after:
            continue
        first, last = statistics.median(before), statistics.median(after)
        if last > first * MOST_GROWTH and last - first > SMALL_MIB:
            found.append(f"{name} grew from {first:.0f} to {last:.0f}")
    return found


def _ledger(installation: Installation) -> list[str]:
    """Charge what was used and check the ledger."""
    installation.manage("settle")
    made = installation.manage("verifyledger")
    print(f"ledger: {made['journals']} journals, {made['entries']} entries, all add up")
    return [] if made["journals"] > 1 else ["the load was not charged"]


if __name__ == "__main__":
    sys.exit(main())
