"""Settling 1,000,000 usage lines, and reading a month of 400,000: 50 nodes, 1,000 buckets.

Prints wall time, and the processor time of this process and its PostgreSQL backend.
"""

import os
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from django.db import connection
from django.utils import timezone

from billing import consumer_credits, ledger, statements
from billing.usage import charges_and_shares

CONSUMERS: Final = 100
NODES: Final = 50
# Ids that organizations of the prepared database do not have.
FIRST_CONSUMER: Final = 1_000_000
OTHERS: Final = 2_000_000
OPERATOR: Final = 3_000_000

LINES: Final = """
    INSERT INTO billing_usageline (line_id, kind, used_at, organization_id, environment_pk,
        bucket_id, bucket_name, node_id, operator_id, quantity)
    SELECT gen_random_uuid(), (%(kinds)s::text[])[1 + g %% %(kinds_count)s],
        date_trunc('month', now()) + (now() - date_trunc('month', now())) * g / %(lines)s,
        %(first)s + g %% %(consumers)s, 1, g %% 1000, 'bucket-' || g %% 1000,
        lpad(to_hex(g %% %(nodes)s), 32, '0')::uuid, %(operator)s + g %% %(operators)s,
        1000 + g %% 100000
    FROM generate_series(1, %(lines)s) g
"""


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print times and memory; the arguments of other benchmarks are not used."""
    for number in range(CONSUMERS):
        consumer_credits.top_up(
            FIRST_CONSUMER + number, 10**15, reference=f"bench {number}", reason="", actor="bench"
        )
    _insert(1_000_000, ["hit", "miss", "egress", "storage"], OTHERS, NODES)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _timed("settle 1,000,000 lines", charges_and_shares.settle)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"grown by {grown / 1024:.0f} MiB")
    _timed("settle again", charges_and_shares.settle)
    _insert(400_000, ["hit", "egress"], OPERATOR, 1)
    charges_and_shares.settle()
    today = timezone.now().date()
    month = today.replace(day=1)
    _timed("statement: totals", lambda: statements.statement_totals(OPERATOR, month)["lines"])
    _timed("statement: first page", lambda: len(statements.statement_page(OPERATOR, month)))
    _timed("statement: all", lambda: sum(1 for _ in statements.statement_lines(OPERATOR, month)))
    _timed("usage of a month", lambda: len(statements.used(FIRST_CONSUMER, month, today)))
    _timed("verify the ledger", ledger.verify)


def _insert(lines: int, kinds: list[str], operator: int, operators: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            LINES,
            {
                "kinds": kinds,
                "kinds_count": len(kinds),
                "first": FIRST_CONSUMER,
                "consumers": CONSUMERS,
                "nodes": NODES,
                "operator": operator,
                "operators": operators,
                "lines": lines,
            },
        )
        cursor.execute("ANALYZE billing_usageline")


def _timed(name: str, work: Callable[[], object]) -> None:
    start, used = time.perf_counter(), _processor_s()
    result = work()
    took = time.perf_counter() - start
    own, backend = (after - before for after, before in zip(_processor_s(), used, strict=True))
    print(f"{name}: {took:.2f} s, processor {own:.2f} + {backend:.2f} s ({result})")


def _processor_s() -> tuple[float, float]:
    """Return the processor time of this process and of its connection's backend."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.process_time(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
