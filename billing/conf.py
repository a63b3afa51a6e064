"""Settings of billing: shares, holds, limits and payout methods."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from billing.money import PPM
from common.settings.env import Env, SettingError
from common.settings.table import (
    integer,
    load,
    secret,
    text,
)

# Money is counted in hundredths; of these Stripe takes whole units, or thousandths.
NOT_IN_CENTS: Final = frozenset(
    (
        "BIF",
        "CLP",
        "DJF",
        "GNF",
        "JPY",
        "KMF",
        "KRW",
        "MGA",
        "PYG",
        "RWF",
        "UGX",
        "VND",
        "VUV",
        "XAF",
        "XOF",
        "XPF",
        "BHD",
        "JOD",
        "KWD",
        "OMR",
        "TND",
    )
)


def _share(text: str) -> int:
    try:
        share = Decimal(text)
    except InvalidOperation:
        raise ValueError("must be a decimal number such as 0.70.") from None
    ppm = share * PPM
    if not share.is_finite() or not 0 <= share < 1 or ppm != int(ppm):
        raise ValueError("must be from 0 to below 1, with at most six decimals.")
    return int(ppm)


def _currency(text: str) -> str:
    if len(text) != len("EUR") or not text.isascii() or not text.isalpha():
        raise ValueError("must be a currency's three letters, such as USD.")
    return text.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingSettings:
    """Credits, operators' shares and payouts. share_ppm: millionths of paid fees."""

    share_ppm: int = text(
        "ZCACHE_OPERATOR_SHARE",
        "Operators' share of the hit and egress fees that others paid, below 1.",
        default="0.70",
        parse=_share,
    )
    currency: str = text(
        "ZBILLING_CURRENCY", "Currency of money amounts.", default="USD", parse=_currency
    )
    welcome_credits: int = integer(
        "ZBILLING_WELCOME_CREDITS",
        "Credits granted to each organization at its first charge; 1,000 are worth a cent. "
        "They pay before paid ones, and earn operators nothing.",
        default=0,
        unit="credits",
    )
    grace_days: int | None = integer(
        "ZBILLING_GRACE_DAYS",
        "How long other operators' nodes go on serving an organization without credits, whose "
        "admins get notices; unset, running out of credits has no consequences.",
        default=None,
        unit="days",
        maximum=3650,
    )
    hold_days: int = integer(
        "ZBILLING_HOLD_DAYS",
        "How long earnings are held before they can be paid out.",
        default=30,
        unit="days",
    )
    payout_minimum_cents: int = integer(
        "ZBILLING_PAYOUT_MINIMUM", "Smallest payout.", default=2000, unit="cents", minimum=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeSettings:
    """The account at Stripe that takes and pays money. api_base: elsewhere in tests only."""

    secret_key: str = secret(
        "ZSTRIPE_SECRET_KEY",
        "Stripe's secret key, `sk_live_…`; with it credits can be "
        "bought, and operators paid to connected accounts.",
        min_chars=16,
    )
    webhook_secret: str = secret(
        "ZSTRIPE_WEBHOOK_SECRET",
        "The signing secret, `whsec_…`, of Stripe's endpoint "
        "`ZPUBLIC_URL/v1/billing/webhooks/stripe`; needed by ZSTRIPE_SECRET_KEY.",
        min_chars=16,
    )
    api_base: str = "https://api.stripe.com"
    timeout_s: float = 15


TABLES: Final = (BillingSettings, StripeSettings)


def stripe(env: Env, billing: BillingSettings) -> StripeSettings:
    """Return the account at Stripe.

    Raises SettingError for a currency that Stripe does not count in cents, and for a key without
    the webhooks' secret: reversals would go unnoticed.
    """
    given = load(StripeSettings, env)
    if given.secret_key and not given.webhook_secret:
        raise SettingError("ZSTRIPE_WEBHOOK_SECRET", "is needed by ZSTRIPE_SECRET_KEY.")
    if given.secret_key and billing.currency in NOT_IN_CENTS:
        raise SettingError("ZBILLING_CURRENCY", "must have cents, for ZSTRIPE_SECRET_KEY.")
    return given
