"""The edge cache and billing on the dashboard: figures, cards, alerts and charts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, LiteralString, NamedTuple

from django.conf import settings
from django.db import connection
from django.template.defaultfilters import filesizeformat

from billing.money import credits_text
from common.errors import PlatformError
from edgecache.api import staff_overview
from platform_site.staff.board import Alert, Board, Card, Chart, Series, clock, link
from platform_site.staff.figures import MAX_COUNTED

DAY: Final = timedelta(days=1)
# The last sample of each full ten minutes; counters only increase.
TRAFFIC: Final[LiteralString] = """
SELECT DISTINCT ON (slot) date_bin('10 minutes', moment, 'epoch') AS slot,
    total_hits, total_misses, bytes_served, p95_latency_ms
FROM edgecache_cachesample WHERE NOT is_hourly AND moment > %(since)s
    AND moment < date_bin('10 minutes', %(now)s, 'epoch') ORDER BY slot, moment DESC
"""
LEDGER: Final[LiteralString] = """
SELECT
    (SELECT coalesce(sum(balance_ucr), 0)::numeric FROM billing_account),
    (SELECT count(*) FROM (SELECT FROM billing_usageline WHERE id > coalesce(
        (SELECT position FROM billing_progress WHERE name = 'settle'), 0) LIMIT %(counted)s) AS l),
    (SELECT count(*) FROM billing_payout WHERE state = 'debited' AND hold_reason = ''),
    (SELECT count(*) FROM billing_payout WHERE state = 'debited' AND hold_reason <> ''),
    (SELECT count(*) FROM billing_payout WHERE state = 'sent'),
    (SELECT coalesce(sum(amount_cents), 0) FROM billing_payout WHERE state IN ('debited', 'sent'))
"""
MIB: Final = 2**20


class TrafficFigures(NamedTuple):
    """The cache's traffic in ten minutes."""

    begins_at: datetime
    hits: int
    misses: int
    bytes_served: int
    p95_ms: float


@dataclass(frozen=True, slots=True)
class LedgerFigures:
    """The ledger's balances. balance_ucr: of all accounts; anything but zero is an error."""

    balance_ucr: int
    unsettled: int
    payouts_waiting: int
    payouts_held: int
    payouts_sent: int
    payouts_cents: int


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """The nodes by state and by region. is_known: False while the brain does not respond."""

    is_known: bool
    states: dict[str, int]
    regions: list[dict[str, Any]]
    online: int = 0


def add(board: Board, *, now: datetime) -> None:
    """Add the cards, alerts and charts of cache and billing."""
    traffic = read_traffic(now=now)
    nodes, ledger = read_nodes(), read_ledger()
    board.cards += [_cache_card(traffic), _nodes_card(nodes), _ledger_card(ledger)]
    board.cards.append(_payouts_card(ledger))
    board.alerts += [*_node_alerts(nodes), *_ledger_alerts(ledger)]
    board.charts += [_reads_chart(traffic), _bytes_chart(traffic)]
    board.regions = nodes.regions


def _cache_card(traffic: Sequence[TrafficFigures]) -> Card:
    hits, misses = sum(t.hits for t in traffic), sum(t.misses for t in traffic)
    ratio = f"{100 * hits / (hits + misses):.1f} %" if hits + misses else "no reads"
    served = filesizeformat(sum(t.bytes_served for t in traffic))
    note = f"{hits + misses:,} reads, {served} served"
    return Card("Cache hits in 24 h", ratio, note, link("edgecache_cachesample_changelist"))


def _nodes_card(nodes: NodeFigures) -> Card:
    path = link("edgecache_nodes")
    if not nodes.is_known:
        return Card("Nodes online", "unknown", "the brain does not answer", path)
    states = ", ".join(f"{number} {state}" for state, number in sorted(nodes.states.items()))
    total = sum(nodes.states.values())
    return Card("Nodes online", f"{nodes.online} of {total}", states or "none registered", path)


def _ledger_card(ledger: LedgerFigures) -> Card:
    is_balanced = ledger.balance_ucr == 0
    note = f"{ledger.unsettled:,} usage lines to settle"
    value = "balanced" if is_balanced else f"off by {credits_text(ledger.balance_ucr)}"
    return Card("Ledger", value, note, link("billing_journal_changelist"))


def _payouts_card(ledger: LedgerFigures) -> Card:
    amount = f"{ledger.payouts_cents / 100:,.2f} {settings.BILLING.currency.upper()}"
    note = f"{ledger.payouts_held} held, {ledger.payouts_sent} sent; {amount} being sent"
    path = link("billing_payout_changelist", "state__exact=debited")
    return Card("Payouts waiting", f"{ledger.payouts_waiting:,}", note, path)


def _node_alerts(nodes: NodeFigures) -> Iterable[Alert]:
    path = link("edgecache_nodes")
    if not nodes.is_known:
        yield Alert("The edge cache's brain does not answer.", path)
    for state, text in (("pending", "wait for approval"), ("quarantined", "are in quarantine")):
        if number := nodes.states.get(state):
            yield Alert(f"Nodes that {text}: {number}.", f"{path}?status={state}")


def _ledger_alerts(ledger: LedgerFigures) -> Iterable[Alert]:
    if ledger.balance_ucr:
        text = "The ledger's accounts do not add up to zero: run manage.py verifyledger."
        yield Alert(text, link("billing_journal_changelist"))
    if ledger.payouts_held:
        path = link("billing_payout_changelist", "state__exact=debited")
        yield Alert(f"Payouts that are held: {ledger.payouts_held}.", path)


def _reads_chart(traffic: Sequence[TrafficFigures]) -> Chart:
    hits, misses = [t.hits for t in traffic], [t.misses for t in traffic]
    return Chart(
        "Cache reads",
        f"{sum(hits):,} hits and {sum(misses):,} misses in 24 hours.",
        "line",
        clock(t.begins_at for t in traffic),
        [Series("Misses", "bad", misses), Series("Hits", "primary", hits)],
    )


def _bytes_chart(traffic: Sequence[TrafficFigures]) -> Chart:
    served = [round(t.bytes_served / MIB, 1) for t in traffic]
    return Chart(
        "Bytes served by the cache",
        f"{sum(served):,.0f} MiB in 24 hours.",
        "line",
        clock(t.begins_at for t in traffic),
        [Series("Served", "primary", served)],
        suffix="MiB",
    )


def read_traffic(*, now: datetime) -> list[TrafficFigures]:
    """Return the last day's traffic, oldest first; a restarted counter adds nothing."""
    with connection.cursor() as cursor:
        cursor.execute(TRAFFIC, {"since": now - DAY, "now": now})
        rows = cursor.fetchall()
    return [_between(before, after) for before, after in pairwise(rows)]


def _between(before: tuple[Any, ...], after: tuple[Any, ...]) -> TrafficFigures:
    hits, misses, served = (max(0, after[n] - before[n]) for n in (1, 2, 3))
    return TrafficFigures(after[0], hits, misses, served, after[4])


def read_ledger() -> LedgerFigures:
    """Return the state of the ledger and the payouts."""
    with connection.cursor() as cursor:
        cursor.execute(LEDGER, {"counted": MAX_COUNTED})
        return LedgerFigures(*(int(value) for value in cursor.fetchone()))


def read_nodes() -> NodeFigures:
    """Return the nodes from the brain."""
    try:
        rows = staff_overview.all_nodes()
    except PlatformError:
        return NodeFigures(is_known=False, states={}, regions=[])
    regions = [
        _region(name, [row for row in rows if row["region"] == name])
        for name in sorted({row["region"] for row in rows})
    ]
    states = Counter(row["status"] for row in rows)
    online = sum(row["health"] == "online" for row in rows)
    return NodeFigures(is_known=True, states=dict(states), regions=regions, online=online)


def _region(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    capacity = sum(row["capacity_bytes"] for row in rows)
    used = sum(row["used_bytes"] for row in rows)
    return {
        "name": name,
        "nodes": len(rows),
        "online": sum(row["health"] == "online" for row in rows),
        "states": ", ".join(
            f"{number} {state}" for state, number in Counter(r["status"] for r in rows).items()
        ),
        "used_bytes": used,
        "capacity_bytes": capacity,
        "used_percent": round(100 * used / capacity) if capacity else 0,
    }
