"""What /metrics counts of SQL."""

import threading
from dataclasses import replace

import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.run import admission
from sqlgateway.run.admission import ADMISSION
from tests.scrape import growth, scrape
from tests.sqlgateway.support import Caller
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.slow


def test_requests_are_counted_by_outcome_with_time_rows_and_bytes(alice: Caller) -> None:
    with growth() as seen:
        answer = alice.sql("SELECT repeat('x', 100) FROM generate_series(1, 50)")
        alice.sql("SELECT nonesuch")

    assert seen.of("zonal_sql_requests_total", outcome="success") == 1
    assert seen.of("zonal_sql_requests_total", outcome="sql_error") == 1
    assert seen.of("zonal_sql_seconds_count") == 2
    assert seen.of("zonal_sql_rows_total") == 50
    assert seen.of("zonal_sql_bytes_total") == answer.body["stats"]["bytes"] > 5000


def test_what_holds_a_slot_is_running_and_what_gets_none_is_refused(alice: Caller) -> None:
    limits = replace(settings.SQL, running_per_organization=2, queue=0)
    with override_settings(SQL=limits), growth() as seen, ADMISSION.slot(alice.scope):
        assert scrape().value("zonal_sql_running") == 1
        assert alice.sql("SELECT 1").code == "too_many_queries"

    assert seen.of("zonal_sql_refused_total", reason="too_many_queries") == 1
    assert seen.of("zonal_sql_requests_total", outcome="success") == 0
    assert seen.after.value("zonal_sql_running") == 0


def test_what_waits_for_a_slot_is_shown(alice: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "QUEUE_WAIT_S", LIMIT_S)

    def wait() -> None:
        with ADMISSION.slot(alice.scope):
            pass

    waiter = threading.Thread(target=wait)
    limits = replace(settings.SQL, running_per_organization=2)
    with override_settings(SQL=limits):
        with ADMISSION.slot(alice.scope):
            waiter.start()
            wait_until(lambda: scrape().value("zonal_sql_waiting") == 1)
        waiter.join()
        assert scrape().value("zonal_sql_waiting") == 0
