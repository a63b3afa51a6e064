"""Where credits are paid for: a dotted path in ``settings.TOP_UP_PROVIDER``."""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.utils.module_loading import import_string

from billing.errors import TopUpsUnavailable


@dataclass(frozen=True, slots=True)
class Checkout:
    """A page where a top-up is paid. session: its id at the provider."""

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


def provider() -> Callable[..., Checkout]:
    """Return the function that opens the page where a top-up is paid.

    It is called as ``stripe_checkout.checkout``. Raises TopUpsUnavailable without a provider.
    """
    if not settings.TOP_UP_PROVIDER:
        raise TopUpsUnavailable
    found: Callable[..., Checkout] = import_string(settings.TOP_UP_PROVIDER)
    return found
