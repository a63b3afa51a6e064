"""The billing tables."""

from edgecache.billing.models.ledger import Account, AccountKind, Entry, Journal
from edgecache.billing.models.payouts import Payout, PayoutMethod
from edgecache.billing.models.rates import Rate, UsageKind
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
    "Entry",
    "Journal",
    "Payout",
    "PayoutMethod",
    "Progress",
    "Rate",
    "RejectedLine",
    "UsageKind",
    "UsageLine",
]
