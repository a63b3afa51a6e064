"""Settling 1,000,000 usage lines, and reading the statement of an operator with 100,000."""

import resource
import time
from collections.abc import Callable, Mapping
from typing import Final

from django.db import connection
from django.utils import timezone

from edgecache.billing import consumer_credits, ledger, reports, settlement

CONSUMERS: Final = 100
NODES: Final = 50
# Ids that no organization of the prepared database has.
FIRST_CONSUMER: Final = 1_000_000
OTHERS: Final = 2_000_000
OPERATOR: Final = 3_000_000

LINES: Final = """
    INSERT INTO billing_usageline (line_id, kind, used_at, organization_id, environment_pk,
        bucket_id, bucket_name, node_id, operator_id, quantity)
    SELECT gen_random_uuid(), (%(kinds)s::text[])[1 + g %% %(kinds_count)s], now(),
        %(first)s + g %% %(consumers)s, 1, g %% 1000, 'bucket-' || g %% 1000,
        lpad(to_hex(g %% %(nodes)s), 32, '0')::uuid, %(operator)s + g %% %(operators)s,
        1000 + g %% 100000
    FROM generate_series(1, %(lines)s) g
"""


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print times and memory; the arguments of other benchmarks are not used."""
    for number in range(CONSUMERS):
        consumer_credits.top_up(
            FIRST_CONSUMER + number, 10**12, reference=f"bench {number}", reason="", actor="bench"
        )
    _insert(1_000_000, ["hit", "miss", "egress", "storage"], OTHERS, NODES)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _timed("settle 1,000,000 lines", settlement.settle)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"grown by {grown / 1024:.0f} MiB")
    _timed("settle again", settlement.settle)
    _insert(100_000, ["hit", "egress"], OPERATOR, 1)
    settlement.settle()
    month = timezone.now().date().replace(day=1)
    _timed("statement: totals", lambda: reports.statement_totals(OPERATOR, month))
    _timed("statement: first page", lambda: len(reports.statement_page(OPERATOR, month)))
    _timed("statement: all", lambda: sum(1 for _ in reports.statement_lines(OPERATOR, month)))
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
    start = time.perf_counter()
    result = work()
    print(f"{name}: {time.perf_counter() - start:.2f} s ({result})")
