"""Workers that run concurrently, are lost, or find the database's rows in an unexpected state."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.core import mail
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.utils import timezone
from procrastinate.contrib.django import app

from accounts import notices
from accounts.models import User
from outbox import deliveries
from outbox.failures import TemporaryFailure
from outbox.messages import queue
from outbox.messages.templates import Scalar
from outbox.models import Delivery
from outbox.tasks import deliver
from tests.outbox.messages.support import Mailbox, jobs_of, run


@pytest.fixture
def clean_queue(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave nothing behind.

    No job, since the queue's tables are not flushed with ours, and no connection of a worker's
    thread, which would hold the test database open.
    """
    monkeypatch.setitem(connections.settings[DEFAULT_DB_ALIAS], "CONN_MAX_AGE", 0)
    yield
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs CASCADE")


def work(**options: Any) -> None:
    """Run a worker until nothing is due, as `manage.py procrastinate worker --one-shot` does."""
    with app.replace_connector(app.connector.get_worker_connector()):  # type: ignore[attr-defined]  # DjangoConnector's
        app.run_worker(wait=False, listen_notify=False, install_signal_handlers=False, **options)


@pytest.mark.usefixtures("clean_queue")
def test_a_worker_sends_committed_messages(mailbox: Mailbox, alice: User) -> None:
    with transaction.atomic():
        delivery = notices.queue_notice(alice, "password_changed")
    work()
    delivery.refresh_from_db()
    assert delivery.state == "sent"
    assert [job["status"] for job in jobs_of(delivery)] == ["succeeded"]
    assert len(mailbox.mails) == 1


@pytest.mark.usefixtures("clean_queue")
def test_a_code_does_not_wait_behind_other_mails(mailbox: Mailbox, alice: User) -> None:
    """Ten thousand invitations of one organization take longer than a code is valid."""
    for _ in range(3):
        notices.queue_notice(alice, "password_changed")
    queue.send_mail(
        alice.email,
        "email_code",
        {"code": "123456", "purpose": "to sign in", "minutes": 10},
        organization_id=alice.organization_id,
        expires_at=timezone.now() + timedelta(minutes=10),
    )
    work(concurrency=1)
    assert len(mailbox.mails) == 4
    assert mailbox.mails[0]["Subject"] == "Your code – Zonal"


@pytest.mark.usefixtures("clean_queue")
def test_several_jobs_of_one_worker_send_a_message_once(mailbox: Mailbox, alice: User) -> None:
    delivery = notices.queue_notice(alice, "password_changed")
    for _ in range(3):
        queue.enqueue(delivery)
    work(concurrency=4)
    assert {job["status"] for job in jobs_of(delivery)} == {"succeeded"}
    assert len(mailbox.mails) == 1


@pytest.mark.usefixtures("clean_queue")
def test_parallel_workers_send_a_message_once(mailbox: Mailbox, alice: User) -> None:
    delivery = notices.queue_notice(alice, "password_changed")
    start = Barrier(8)

    def once(_: int) -> None:
        try:
            start.wait()
            deliver(str(delivery.pk))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(once, range(8)))
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("sent", 1)
    assert len(mailbox.mails) == 1


@pytest.mark.usefixtures("clean_queue")
def test_a_message_queued_by_a_job_is_part_of_its_transaction(alice: User) -> None:
    """The worker gives the queue a connection of its own; messages do not go through it."""

    class Abandoned(Exception):
        pass

    def cause() -> None:
        with transaction.atomic():
            kept.append(notices.queue_notice(alice, "password_changed"))
            raise Abandoned

    kept: list[Delivery] = []
    with (
        app.replace_connector(app.connector.get_worker_connector()),  # type: ignore[attr-defined]  # DjangoConnector's
        pytest.raises(Abandoned),
    ):
        cause()
    assert not jobs_of(kept[0])


@pytest.mark.django_db
def test_a_job_without_a_row_does_nothing(alice: User) -> None:
    deliver(str(alice.pk))
    assert not mail.outbox


@pytest.mark.django_db
def test_the_message_of_a_lost_worker_is_released_after_the_lease(alice: User) -> None:
    now = timezone.now()
    delivery = notices.queue_notice(alice, "password_changed")
    assert deliveries.claim(Delivery, [delivery.pk], now=now)
    assert run(delivery).state == "sending"
    queue.maintain(now=now + timedelta(minutes=4))
    assert run(delivery).state == "sending"
    queue.maintain(now=now + timedelta(minutes=6))
    delivery.refresh_from_db()
    assert (delivery.state, delivery.error) == ("queued", "worker_lost")
    assert len(jobs_of(delivery)) == 2
    assert run(delivery).state == "sent"
    assert len(mail.outbox) == 1


@pytest.mark.django_db
def test_a_message_that_crashes_every_worker_fails(alice: User) -> None:
    now = timezone.now()
    delivery = notices.queue_notice(alice, "password_changed")
    Delivery.objects.update(state="sending", attempts=10, claimed_at=now - timedelta(hours=1))
    queue.maintain(now=now)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.error) == ("failed", "worker_lost")


@pytest.mark.django_db
@pytest.mark.parametrize("failure", [None, TemporaryFailure("late")])
def test_a_worker_after_its_lease_does_not_change_the_claim_of_another(
    alice: User, failure: TemporaryFailure | None
) -> None:
    now = timezone.now()
    delivery = notices.queue_notice(alice, "password_changed")
    (slow,) = deliveries.claim(Delivery, [delivery.pk], now=now)
    queue.maintain(now=now + timedelta(minutes=6))
    assert deliveries.claim(Delivery, [delivery.pk], now=now)
    assert deliveries.settle(slow, failure, now=now) is None
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("sending", 2)


@pytest.mark.django_db
def test_a_lost_job_is_replaced_once(alice: User) -> None:
    now = timezone.now()
    delivery = notices.queue_notice(alice, "password_changed")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    for minutes in (6, 11, 16):
        queue.maintain(now=now + timedelta(minutes=minutes))
    [job] = jobs_of(delivery)
    assert job["queueing_lock"] == f"delivery:{delivery.pk}"


@pytest.mark.django_db
def test_expired_and_long_failed_messages_are_wiped(alice: User) -> None:
    now = timezone.now()
    soon = now + timedelta(minutes=10)
    context: dict[str, Scalar] = {"code": "1", "purpose": "x", "minutes": 10}
    code = queue.send_mail(
        alice.email, "email_code", context, organization_id=None, expires_at=soon
    )
    notice = notices.queue_notice(alice, "password_changed")
    notice.finish(Delivery.State.FAILED, error="smtp_451", now=now)
    queue.maintain(now=now + timedelta(minutes=11))
    code.refresh_from_db()
    notice.refresh_from_db()
    assert (code.state, code.error, code.payload) == ("given_up", "expired", "")
    assert notice.payload
    queue.maintain(now=now + timedelta(days=8))
    notice.refresh_from_db()
    assert (notice.state, notice.error, notice.payload) == ("given_up", "smtp_451", "")


@pytest.mark.django_db
def test_finished_rows_are_kept_for_a_month(alice: User) -> None:
    now = timezone.now()
    delivery = run(notices.queue_notice(alice, "password_changed"))
    waiting = notices.queue_notice(alice, "password_changed")
    queue.maintain(now=now + timedelta(days=29))
    assert Delivery.objects.filter(pk=delivery.pk).exists()
    queue.maintain(now=now + timedelta(days=31))
    assert list(Delivery.objects.all()) == [waiting]
