"""The billing tables."""

from edgecache.billing.models.days import ConsumerDay, OperatorDay, SqlDay
from edgecache.billing.models.ledger import Account, AccountKind, Entry, Journal
from edgecache.billing.models.payouts import ConnectedAccount, Payout, PayoutMethod
from edgecache.billing.models.quarantines import Quarantine
from edgecache.billing.models.rates import Rate, UsageKind
from edgecache.billing.models.service import ServiceState, SpendCap
from edgecache.billing.models.topups import PaymentReversal, TopUp
from edgecache.billing.models.usage import (
    Adjustment,
    Charge,
    Progress,
    RejectedLine,
    UsageLine,
)

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
