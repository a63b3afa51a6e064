"""Requests for a payout at the same moment: one is paid, and the others move nothing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import connection
from pytest_django import Settings

from billing import ledger
from billing.errors import PayoutRefused
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.payouts import Payout
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from common.scoping import unscoped
from tests.billing.payouts.test_payouts import ACCOUNT, RESTED
from tests.billing.support import NOW, OLGA, operator

EARNED_UCR = 300 * UCR_PER_CENT


@unscoped("tests arrange rows")
def request(_number: int) -> str:
    """Request a payout on a connection of its own; return what became of it."""
    try:
        requests.request(OLGA, by="user:olga", now=RESTED)
    except PayoutRefused as refusal:
        return str(refusal.detail)
    else:
        return "requested"
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_one_of_several_concurrent_requests_moves_money(settings: Settings) -> None:
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=100)
    methods.replace(OLGA, "manual", ACCOUNT, by="user:olga", now=NOW)
    postings = [
        Posting(AccountKind.PAYABLE, OLGA, EARNED_UCR),
        Posting(AccountKind.FEES, None, -EARNED_UCR),
    ]
    ledger.post(Journal.Kind.RELEASE, "earned", postings)
    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(request, range(4)))
    assert answers == ["Another payout is on its way."] * 3 + ["requested"]
    assert Payout.objects.get().amount_ucr == EARNED_UCR
    assert operator() == (0, 0, 0)
