"""The platform's account at Stripe: its client, and what Stripe's errors mean.

Source: https://docs.stripe.com/api/errors and https://docs.stripe.com/api/idempotent_requests.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import stripe
import structlog
from django.conf import settings

from billing.conf import StripeSettings
from billing.payouts.providers import PayoutProviderUnavailable
from common.machine.reasons import reason

log = structlog.get_logger(__name__)

# The library logs Stripe's messages, and sends the machine's description with each request.
logging.getLogger("stripe").setLevel(logging.WARNING)
stripe.enable_telemetry = False

CONNECT_TIMEOUT_S: Final = 3.05
UNKNOWN_ACCOUNT: Final = frozenset({"account_invalid", "resource_missing"})


class StripeRefusal(Exception):
    """Stripe refuses the request itself; repeating it changes nothing.

    code: Stripe's code, such as ``balance_insufficient``, or ''.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def client() -> stripe.StripeClient:
    """Return the client of the platform's account.

    It does not retry: jobs do, which first ask for the result of their request.
    """
    return _client(settings.STRIPE)


@contextmanager
def calls() -> Iterator[None]:
    """Turn Stripe's errors into the two that callers distinguish; neither shows Stripe's text.

    Raises StripeRefusal, and PayoutProviderUnavailable if the request may have been carried out,
    should be repeated, or was refused because of the platform's key, which is not the payee's
    fault.
    """
    try:
        yield
    except stripe.StripeError as exc:
        code = _code(exc)
        log.warning(
            "billing_stripe_failed",
            error=_said(exc),
            status=exc.http_status,
            reason=code,
            stripe_request_id=exc.request_id,
        )
        is_refusal = isinstance(exc, stripe.InvalidRequestError | stripe.CardError) or (
            isinstance(exc, stripe.PermissionError) and code in UNKNOWN_ACCOUNT
        )
        # The cause holds Stripe's text, which would be logged with a job's failure.
        if is_refusal:
            raise StripeRefusal(code) from None
        raise PayoutProviderUnavailable from None


def _said(exc: stripe.StripeError) -> str:
    """Return what the network said, of answers only the kind: their text is Stripe's."""
    is_network = isinstance(exc, stripe.APIConnectionError) and exc.__cause__ is not None
    return reason(exc.__cause__) if is_network and exc.__cause__ else type(exc).__name__


@lru_cache(maxsize=1)
def _client(account: StripeSettings) -> stripe.StripeClient:
    return stripe.StripeClient(
        account.secret_key,
        base_addresses={"api": account.api_base},
        max_network_retries=0,
        http_client=stripe.RequestsClient(timeout=(CONNECT_TIMEOUT_S, account.timeout_s)),
    )


def _code(exc: stripe.StripeError) -> str:
    body: Any = exc.json_body
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""
