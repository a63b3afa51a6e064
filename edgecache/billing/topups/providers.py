"""Where credits are paid for: a class named by dotted path in ``settings.TOP_UP_PROVIDER``."""

from dataclasses import dataclass
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from edgecache.billing.errors import TopUpsUnavailable
from edgecache.billing.models import TopUp


@dataclass(frozen=True, slots=True)
class Checkout:
    """A page where a top-up is paid. session: the provider's id of it."""

    session: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment that has arrived, as the provider reports it.

    top_up_id and organization_id: as they were handed to the provider. payment: its id there.
    """

    top_up_id: str
    organization_id: str
    session: str
    payment: str
    amount_cents: int
    currency: str


class TopUpProvider(Protocol):
    """A place to pay."""

    def checkout(self, top_up: TopUp, *, paid_url: str, left_url: str) -> Checkout:
        """Open the page where a top-up is paid; the same one for the same top-up.

        paid_url, left_url: where it sends the browser afterwards. Neither proves a payment.
        Raises ProviderUnavailable.
        """
        ...


def provider() -> TopUpProvider:
    """Return the place to pay.

    Raises TopUpsUnavailable where there is none.
    """
    if not settings.TOP_UP_PROVIDER:
        raise TopUpsUnavailable
    found: TopUpProvider = import_string(settings.TOP_UP_PROVIDER)()
    return found
