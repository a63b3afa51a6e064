"""The billing tables."""

from edgecache.billing.models.ledger import Account, AccountKind, Entry, Journal
from edgecache.billing.models.payouts import Payout, PayoutMethod
from edgecache.billing.models.rates import Rate, UsageKind
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
    "Entry",
    "Journal",
    "PaymentReversal",
    "Payout",
    "PayoutMethod",
    "Progress",
    "Rate",
    "RejectedLine",
    "TopUp",
    "UsageKind",
    "UsageLine",
]
