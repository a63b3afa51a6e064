"""Connected accounts: an organization is paid only to one that was opened for it."""

import pytest

from accounts.models import User
from billing.models.payouts import ConnectedAccount, PayoutMethod
from tests.billing.stripe.server import ACCOUNT, Stripe
from tests.cast import Answer, signed_in

PATH = "/v1/cache/payout-method"


def connect(user: User, kind: str = "stripe") -> Answer:
    """Ask for the page of the provider."""
    return signed_in(user).post(f"{PATH}/connect", {"kind": kind})


def choose(user: User, **details: str) -> Answer:
    """Set the payout method."""
    return signed_in(user).call("PUT", PATH, {"kind": "stripe", "details": details})


def opened(user: User) -> str:
    """Return the account of the user's organization."""
    return ConnectedAccount.objects.get(organization_id=user.organization_id).account


def completed(stripe: Stripe, user: User) -> str:
    """Let the user's organization complete its account; return it."""
    assert connect(user).status == 200
    account = opened(user)
    stripe.connect(account)
    return account


def test_an_account_is_opened_for_the_organization_and_completed_at_stripe(
    stripe: Stripe, alice: User
) -> None:
    said = connect(alice)
    assert (said.status, said.body["url"]) == (
        200,
        f"https://connect.stripe.com/setup/e/{opened(alice)}",
    )
    _, _, params = next(one for one in stripe.requests if one[1] == "/v1/accounts")
    assert params["metadata[organization]"] == str(alice.organization_id)
    # Not completed yet.
    assert choose(alice).status == 400
    stripe.connect(opened(alice))
    assert choose(alice).status == 200
    assert PayoutMethod.objects.get().details == {"account": opened(alice)}


def test_a_second_request_opens_no_second_account(stripe: Stripe, alice: User) -> None:
    assert [connect(alice).status for _ in range(2)] == [200, 200]
    assert sum(path == "/v1/accounts" for _, path, _ in stripe.requests) == 1


@pytest.mark.parametrize("fault", ["lost", "unanswered", "broken", "other refusal", "nonsense"])
def test_a_provider_that_is_away_opens_one_account_later(
    stripe: Stripe, alice: User, fault: str
) -> None:
    stripe.plan = [fault]
    said = connect(alice)
    assert (said.status, said.code) == (503, "payout_provider_unavailable")
    assert connect(alice).status == 200
    assert len(stripe.accounts) == 2


def test_another_organizations_account_is_refused(
    stripe: Stripe, alice: User, charlie: User
) -> None:
    account = completed(stripe, alice)
    # Known at Stripe, able to be paid, and not Charlie's, before and after Charlie has an account.
    for _ in range(2):
        before = len(stripe.requests)
        for named in (account, ACCOUNT):
            said = choose(charlie, account=named)
            assert (said.status, said.body["errors"][0]["field"]) == (400, "details.account")
        assert len(stripe.requests) == before
        completed(stripe, charlie)
    assert not PayoutMethod.objects.exists()
    assert choose(charlie).status == 200
    assert PayoutMethod.objects.get().details == {"account": opened(charlie)}


def test_only_admins_connect_and_only_what_has_accounts(
    stripe: Stripe, alice: User, bob: User
) -> None:
    assert connect(bob).status == 403
    for kind in ("manual", "nothing"):
        said = connect(alice, kind)
        assert (said.status, said.code) == (409, "payout_refused")
    assert not ConnectedAccount.objects.exists()
