"""Transactions that post wait for each other before they lock anything, so that none deadlocks."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, transaction

from billing import consumer_credits
from tests.billing.support import ALICE, CHARLIE

STAFF = {"reason": "test", "actor": "staff"}


def top_up_at_once() -> None:
    """Book a payment of Charlie, and fail if another transaction has to be waited for."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '1ms'")
            consumer_credits.top_up(CHARLIE, 1, reference="x", **STAFF)
            transaction.set_rollback(True)
    finally:
        connection.close()


def test_journals_without_a_common_account_wait_for_each_other() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(top_up_at_once).result()
        consumer_credits.grant(ALICE, 1, key="gift", **STAFF)
        with pytest.raises(OperationalError, match="lock timeout"):
            pool.submit(top_up_at_once).result()
