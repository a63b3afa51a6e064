"""Checks of webhooks: late deliveries and failing servers."""

from collections.abc import Iterator
from typing import Final

from operations.doctor.findings import Finding, Level
from outbox import metrics

LATE_S: Final = 300
# A single failing server is its owner's problem. If half of this many fail at the same time, the
# cause is the platform.
FEW: Final = 5
MANY: Final = 0.5


def check_webhooks() -> Iterator[Finding]:
    """Check that no delivery is late, and that not half of the servers fail at the same time."""
    found = metrics.read()
    if found.oldest_due_s > LATE_S:
        message = f"A delivery could have been sent {found.oldest_due_s:.0f} s ago."
        advice = "See that a task worker runs (`manage.py procrastinate worker`), and its log."
        yield Finding("webhooks", Level.WARNING, message, advice)
    total = found.answering + found.failing
    if found.failing >= FEW and found.failing > MANY * total:
        message = f"{found.failing} of {total} webhooks fail."
        advice = "See that this machine's task worker reaches https servers outside: DNS, firewall."
        yield Finding("webhooks", Level.WARNING, message, advice)
    elif found.oldest_due_s <= LATE_S:
        failed = found.deliveries["failed"]
        message = (
            f"{total} are sent in time; {failed} deliveries of the last day failed permanently."
        )
        yield Finding("webhooks", Level.OK, message)
