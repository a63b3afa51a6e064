"""Ways to pay operators: each is a class named by dotted path in ``settings.PAYOUT_METHODS``."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from billing.models.payouts import Payout
from common.errors import InvalidRequest


class PayoutOutcome(StrEnum):
    """What a provider says about a payout."""

    UNKNOWN = "unknown"
    SENT = "sent"
    CONFIRMED = "confirmed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """reference: the provider's id of the payment. failure: a sentence, if it was refused."""

    outcome: PayoutOutcome
    reference: str = ""
    failure: str = ""


class PayoutProviderUnavailable(Exception):
    """The provider did not answer, or not in time: whether it paid is not known."""


class PayoutProvider(Protocol):
    """A way to pay. Every call may be repeated with the same payout and pays at most once."""

    def checked(self, details: Mapping[str, Any], organization_id: int) -> dict[str, Any]:
        """Return the details of an organization's method as they are stored.

        Raises InvalidRequest, and PayoutProviderUnavailable if they could not be checked.
        """
        ...

    def label(self, details: Mapping[str, Any]) -> str:
        """Return the method for people, with account numbers shortened."""
        ...

    def send(self, payout: Payout) -> ProviderAnswer:
        """Pay.

        Raises PayoutProviderUnavailable; the payout is then looked up before it is sent again.
        """
        ...

    def find(self, payout: Payout) -> ProviderAnswer:
        """Return what the provider knows of a payout that may have been sent.

        Raises PayoutProviderUnavailable.
        """
        ...


def sender_of(kind: str) -> PayoutProvider:
    """Return the way to pay of a payout that was debited.

    Raises PayoutProviderUnavailable for one that is not offered now: the payout waits; others go
    on.
    """
    try:
        return provider_of(kind)
    except InvalidRequest:
        raise PayoutProviderUnavailable from None


def provider_of(kind: str) -> PayoutProvider:
    """Return a way to pay by its name. Raises InvalidRequest."""
    path = settings.PAYOUT_METHODS.get(kind)
    if path is None:
        known = ", ".join(sorted(settings.PAYOUT_METHODS))
        raise InvalidRequest(f"There is no payout method {kind!r}; there are: {known}.")
    provider: PayoutProvider = import_string(path)()
    return provider
