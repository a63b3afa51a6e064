"""Tables of the ledger, usage, payouts and top-ups.

Door: ledger, payouts, quarantines, rates, service, topups, usage.
Imports: common.
"""

from billing.models.days import ConsumerDay, OperatorDay, SqlDay
from billing.models.ledger import Account, AccountKind, Entry, Journal
from billing.models.payouts import ConnectedAccount, Payout, PayoutMethod
from billing.models.quarantines import Quarantine
from billing.models.rates import Rate, UsageKind
from billing.models.service import ServiceState, SpendCap
from billing.models.topups import PaymentReversal, TopUp
from billing.models.usage import Adjustment, Charge, Progress, RejectedLine, UsageLine

__all__ = [
    "Account",
    "AccountKind",
    "Adjustment",
    "Charge",
    "ConnectedAccount",
    "ConsumerDay",
    "Entry",
    "Journal",
    "OperatorDay",
    "PaymentReversal",
    "Payout",
    "PayoutMethod",
    "Progress",
    "Quarantine",
    "Rate",
    "RejectedLine",
    "ServiceState",
    "SpendCap",
    "SqlDay",
    "TopUp",
    "UsageKind",
    "UsageLine",
]
