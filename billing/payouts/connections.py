"""Accounts at payment providers that the platform opens for an organization, to pay it there.

Only these are accepted as a payout method: an account's id is not a secret, so naming one proves
nothing.
"""

from typing import Protocol, runtime_checkable

from django.conf import settings

from billing.errors import PayoutMethodUnchecked, PayoutRefused
from billing.models.payouts import ConnectedAccount
from billing.payouts.providers import PayoutProviderUnavailable, provider_of
from outbox.messages.templates import console_link


@runtime_checkable
class Connecting(Protocol):
    """A way to pay to accounts that payees open through the platform."""

    def open_account(self, row: ConnectedAccount) -> str:
        """Return the id of a new account; the same one for the same row.

        Raises PayoutProviderUnavailable.
        """
        ...

    def onboarding_url(self, account: str, *, done_url: str, again_url: str) -> str:
        """Return the page where the payee proves its identity; it works once, for minutes.

        Raises PayoutProviderUnavailable.
        """
        ...


def connect(organization_id: int, kind: str, *, by: str) -> str:
    """Return the page where an organization completes its account, which is opened if needed.

    Raises PayoutRefused for a kind that has no accounts here, and PayoutMethodUnchecked.
    """
    provider: object = provider_of(kind) if kind in settings.PAYOUT_METHODS else None
    if not isinstance(provider, Connecting):
        raise PayoutRefused(f"There is nothing to connect for {kind!r} here.")
    row, _ = ConnectedAccount.objects.get_or_create(
        organization_id=organization_id, kind=kind, defaults={"created_by": by}
    )
    # Committed before the provider is asked, so that two concurrent requests open one account.
    try:
        if not row.account:
            row.account = provider.open_account(row)
            row.save(update_fields=["account"])
        return provider.onboarding_url(
            row.account,
            done_url=console_link("cache", payout_account="done"),
            again_url=console_link("cache", payout_account="again"),
        )
    except PayoutProviderUnavailable:
        raise PayoutMethodUnchecked from None


def account_of(organization_id: int, kind: str) -> str:
    """Return the account that was opened for an organization; '' if none was."""
    row = ConnectedAccount.objects.filter(organization_id=organization_id, kind=kind).first()
    return row.account if row is not None else ""
