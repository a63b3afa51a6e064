"""The platform's settings with a bank of the tests as the payout method."""

from platform_site.settings import *  # noqa: F403 - a settings module

PAYOUT_METHODS = {  # type: ignore[misc]  # instead of the real ones
    "bank": "tests.billing.kills.bank.Bank"
}
