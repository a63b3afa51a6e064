"""Payouts by hand: staff pays what ``runpayouts --csv`` lists and marks it as paid."""

from collections.abc import Mapping
from typing import Any, Final

from edgecache.billing.models import Payout
from edgecache.billing.payouts.providers import Outcome, ProviderAnswer
from platform_site.lib.errors import FieldError, InvalidRequest

MAX_ACCOUNT_CHARS: Final = 200
SHOWN: Final = 4


class Manual:
    """The details are one field, ``account``: where the money goes, such as an IBAN."""

    def checked(self, details: Mapping[str, Any], organization_id: int) -> dict[str, Any]:
        """Return the account without surrounding blanks."""
        account = str(details.get("account", "")).strip()
        if (
            set(details) != {"account"}
            or not account.isprintable()
            or not 0 < len(account) <= MAX_ACCOUNT_CHARS
        ):
            message = f"One line of at most {MAX_ACCOUNT_CHARS} characters, such as an IBAN."
            raise InvalidRequest(fields=[FieldError("details.account", "invalid", message)])
        return {"account": account}

    def label(self, details: Mapping[str, Any]) -> str:
        """Return the last characters of the account."""
        return f"…{str(details['account'])[-SHOWN:]}"

    def send(self, payout: Payout) -> ProviderAnswer:
        """Wait for staff."""
        return ProviderAnswer(Outcome.SENT)

    def find(self, payout: Payout) -> ProviderAnswer:
        """Wait for staff: only they know."""
        return ProviderAnswer(Outcome.SENT)
