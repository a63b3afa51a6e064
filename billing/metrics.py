"""Figures of the ledger for Prometheus."""

from collections.abc import Iterator
from typing import Final

from django.db import connection
from prometheus_client.core import GaugeMetricFamily

from billing.models.payouts import Payout
from common.metrics.figures import GaugeGroup, gauge

# Rows that are counted at most.
MAX_COUNTED: Final = 10_000
MONEY: Final = """
SELECT
    (SELECT coalesce(sum(balance_ucr), 0) <> 0 FROM billing_account),
    (SELECT count(*) FROM (SELECT FROM billing_usageline WHERE id > coalesce(
        (SELECT position FROM billing_progress WHERE name = 'settle'), 0) LIMIT %s) AS lines)
"""
# The open ones by their index; of all, the newest.
PAYOUTS: Final = """
SELECT state, hold_reason <> '', count(*), extract(epoch FROM clock_timestamp() - min(changed_at))
FROM billing_payout WHERE state IN ('debited', 'sent') GROUP BY 1, 2
UNION ALL
SELECT state, false, count(*), 0
FROM (SELECT state FROM billing_payout ORDER BY id DESC LIMIT %s) AS newest
WHERE state NOT IN ('debited', 'sent') GROUP BY 1
"""


def _read() -> Iterator[GaugeMetricFamily]:
    with connection.cursor() as cursor:
        cursor.execute(MONEY, [MAX_COUNTED])
        is_wrong, unsettled = cursor.fetchone()
        cursor.execute(PAYOUTS, [MAX_COUNTED])
        rows = cursor.fetchall()
    yield gauge(
        "zonal_ledger_out_of_balance",
        "1 if the balances of all accounts do not add up to zero, else 0.",
        int(is_wrong),
    )
    yield gauge(
        "zonal_ledger_unsettled_lines",
        f"Usage lines that are imported but not charged, at most {MAX_COUNTED}.",
        unsettled,
    )
    counts = dict.fromkeys([*Payout.State.values, "held"], 0)
    oldest_s = 0.0
    for state, is_held, number, age_s in rows:
        counts["held" if is_held else state] += number
        oldest_s = max(oldest_s, 0.0 if is_held else float(age_s))
    payouts = GaugeMetricFamily(
        "zonal_payouts",
        f"Payouts by state; held ones wait for staff. Ended ones: of the newest {MAX_COUNTED}.",
        labels=["state"],
    )
    for state, number in counts.items():
        payouts.add_metric([state], number)
    yield payouts
    yield gauge(
        "zonal_payouts_oldest_seconds",
        "For how long the state of an open payout has not changed, at most; without held ones.",
        oldest_s,
    )


LEDGER: Final = GaugeGroup("ledger", _read, keep_s=60)
