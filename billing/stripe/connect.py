"""Payouts by Stripe Connect: transfers from the platform's balance to connected accounts.

Source: https://docs.stripe.com/connect/separate-charges-and-transfers. The payout's id is the
transfer's idempotency key, which Stripe forgets after a day, and its group, which it keeps.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

import stripe
import structlog

from billing.models.payouts import ConnectedAccount, Payout
from billing.payouts.connections import account_of
from billing.payouts.providers import PayoutOutcome, PayoutProviderUnavailable, ProviderAnswer
from billing.stripe.account import UNKNOWN_ACCOUNT, StripeRefusal, calls, client
from common.errors import FieldError, InvalidRequest

log = structlog.get_logger(__name__)

ACCOUNT: Final = re.compile(r"acct_[A-Za-z0-9]{8,64}")
KIND: Final = "stripe"
SHOWN: Final = 4
# A payout has one transfer; more were made by hand at Stripe.
MAX_TRANSFERS: Final = 100
REVERSED: Final = "Stripe reversed the transfer."
REFUSALS: Final[Mapping[str, str]] = {
    "balance_insufficient": "The platform's balance at Stripe does not cover the payout now.",
    "insufficient_capabilities_for_transfer": "The account cannot receive transfers now.",
    **dict.fromkeys(UNKNOWN_ACCOUNT, "Stripe has no such account connected to this platform."),
}


class StripeConnect:
    """The details are the account that was opened for the organization; it need not be named."""

    def open_account(self, row: ConnectedAccount) -> str:
        """Open an account that the payee completes on Stripe's pages."""
        try:
            with calls():
                made = client().v1.accounts.create(
                    {
                        "type": "express",
                        "capabilities": {"transfers": {"requested": True}},
                        "metadata": {"organization": str(row.organization_id)},
                    },
                    {"idempotency_key": f"connect-{row.pk}"},
                )
        except StripeRefusal:
            raise PayoutProviderUnavailable from None
        account = str(getattr(made, "id", ""))
        if not ACCOUNT.fullmatch(account):
            raise PayoutProviderUnavailable
        return account

    def onboarding_url(self, account: str, *, done_url: str, again_url: str) -> str:
        """Return Stripe's page for an account of the platform's."""
        try:
            with calls():
                link = client().v1.account_links.create(
                    {
                        "account": account,
                        "type": "account_onboarding",
                        "return_url": done_url,
                        "refresh_url": again_url,
                    }
                )
        except StripeRefusal:
            raise PayoutProviderUnavailable from None
        url = str(getattr(link, "url", ""))
        if not url.startswith("https://"):
            raise PayoutProviderUnavailable
        return url

    def checked(self, details: Mapping[str, Any], organization_id: int) -> dict[str, Any]:
        """Return the organization's account if it can be paid."""
        account = account_of(organization_id, KIND)
        named = str(details.get("account", account)).strip()
        if not account or named != account or set(details) - {"account"}:
            # Ids of accounts are not secret, so only the own account may be named.
            raise _invalid("Connect an account first: POST /v1/cache/payout-method/connect.")
        try:
            with calls():
                found = client().v1.accounts.retrieve(account)
        except StripeRefusal:
            raise _invalid(REFUSALS["account_invalid"]) from None
        capabilities = getattr(found, "capabilities", None)
        if (
            getattr(found, "id", "") != account
            or getattr(found, "payouts_enabled", False) is not True
            or getattr(capabilities, "transfers", "") != "active"
        ):
            raise _invalid("Stripe does not enable transfers and payouts for this account yet.")
        return {"account": account}

    def label(self, details: Mapping[str, Any]) -> str:
        """Return the last characters of the account."""
        return f"acct_…{str(details['account'])[-SHOWN:]}"

    def send(self, payout: Payout) -> ProviderAnswer:
        """Transfer the amount; the money is the account's immediately."""
        try:
            with calls():
                transfer = client().v1.transfers.create(
                    {
                        "amount": payout.amount_cents,
                        "currency": payout.currency.lower(),
                        "destination": payout.method.details["account"],
                        "transfer_group": str(payout.pk),
                    },
                    {"idempotency_key": str(payout.pk)},
                )
        except StripeRefusal as exc:
            failure = REFUSALS.get(exc.code, "Stripe refused the transfer.")
            return ProviderAnswer(PayoutOutcome.REFUSED, failure=failure)
        return _answer([transfer], payout)

    def find(self, payout: Payout) -> ProviderAnswer:
        """Look the transfer up by its group."""
        try:
            with calls():
                found = client().v1.transfers.list(
                    {"transfer_group": str(payout.pk), "limit": MAX_TRANSFERS}
                )
        except StripeRefusal:
            # A lookup that is refused says nothing about the payment.
            raise PayoutProviderUnavailable from None
        return _answer(getattr(found, "data", [None]), payout)


def _answer(transfers: Sequence[stripe.Transfer | None], payout: Payout) -> ProviderAnswer:
    """Return what a payout's transfers say.

    Raises PayoutProviderUnavailable for a transfer of another amount or account: staff must look.
    """
    own = [one for one in transfers if one is not None and matches(one.to_dict(), payout)]
    if len(own) < len(transfers):
        log.error("billing_transfer_differs", payout=str(payout.pk))
        raise PayoutProviderUnavailable
    standing = [transfer for transfer in own if not transfer.reversed]
    if standing:
        return ProviderAnswer(PayoutOutcome.CONFIRMED, reference=standing[0].id)
    if own:
        return ProviderAnswer(PayoutOutcome.REFUSED, reference=own[0].id, failure=REVERSED)
    return ProviderAnswer(PayoutOutcome.UNKNOWN)


def payout_of(transfer: Mapping[str, Any]) -> Payout | None:
    """Return what a transfer paid: by its group, or as staff recorded it after a restore."""
    with suppress(ValueError):
        rows = Payout.objects.select_related("method")
        group = UUID(transfer["transfer_group"] or "")
        payout = rows.filter(pk=group, method__kind=KIND).first()
        if payout is not None:
            return payout if matches(transfer, payout) else None
    # Those of the platform itself have their own group, and attempts.
    return Payout.objects.filter(
        attempts=0,
        reference=transfer["id"],
        amount_cents=transfer["amount"],
        currency__iexact=transfer["currency"],
    ).first()


def matches(transfer: Mapping[str, Any], payout: Payout) -> bool:
    """True if a transfer is a payout's: its amount, its account and its group."""
    names = ("object", "amount", "currency", "destination", "transfer_group")
    return [transfer.get(name) for name in names] == [
        "transfer",
        payout.amount_cents,
        payout.currency.lower(),
        # It is not kept for an organization that was erased.
        payout.method.details.get("account", transfer.get("destination")),
        str(payout.pk),
    ]


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(fields=[FieldError("details.account", "invalid", message)])
