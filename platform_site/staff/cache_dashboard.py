"""The edge cache and billing on the dashboard."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django.conf import settings
from django.template.defaultfilters import filesizeformat

from billing.money import credits_text
from platform_site.staff import cache_figures
from platform_site.staff.board import Alert, Board, Card, clock, link
from platform_site.staff.cache_figures import LedgerFigures, NodeFigures, TrafficFigures
from platform_site.staff.charts import Chart, Series

MIB: Final = 2**20


def add(board: Board, *, now: datetime) -> None:
    """Add the cards, alerts and charts of cache and billing."""
    traffic = cache_figures.read_traffic(now=now)
    nodes, ledger = cache_figures.read_nodes(), cache_figures.read_ledger()
    board.cards += [_cache_card(traffic), _nodes_card(nodes), _ledger_card(ledger)]
    board.cards.append(_payouts_card(ledger))
    board.alerts += [*_node_alerts(nodes), *_ledger_alerts(ledger)]
    board.charts += [_hits(traffic), _bytes(traffic)]
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


def _hits(traffic: Sequence[TrafficFigures]) -> Chart:
    hits, misses = [t.hits for t in traffic], [t.misses for t in traffic]
    return Chart(
        "Cache reads",
        f"{sum(hits)} hits and {sum(misses)} misses in 24 hours.",
        "line",
        clock(t.begins_at for t in traffic),
        [Series("Misses", "bad", misses), Series("Hits", "primary", hits)],
    )


def _bytes(traffic: Sequence[TrafficFigures]) -> Chart:
    served = [round(t.bytes_served / MIB, 1) for t in traffic]
    return Chart(
        "Bytes served by the cache",
        f"{sum(served):,.0f} MiB in 24 hours.",
        "line",
        clock(t.begins_at for t in traffic),
        [Series("Served", "primary", served)],
        suffix="MiB",
    )
