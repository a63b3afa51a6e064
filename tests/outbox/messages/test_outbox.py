"""A message is a row and a job of the caller's transaction, and its content nowhere else."""

from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection, transaction
from django.utils import timezone

from accounts import notices
from accounts.models import User
from outbox.messages import queue
from outbox.messages.templates import Scalar
from outbox.models import Delivery
from tests.outbox.messages.support import CODE, Mailbox, jobs_of, run

pytestmark = pytest.mark.django_db

CONTEXT: dict[str, Scalar] = {"code": CODE, "purpose": "to sign in", "minutes": 10}


def everything_stored() -> str:
    """Return every text of the deliveries and of the queue, as the database has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT d::text FROM outbox_delivery d")
        rows = [row[0] for row in cursor.fetchall()]
        cursor.execute("SELECT j::text FROM procrastinate_jobs j")
        return "\n".join(rows + [row[0] for row in cursor.fetchall()])


def test_the_job_contains_only_the_id_of_the_row(code_mail: Delivery) -> None:
    [job] = jobs_of(code_mail)
    assert job["args"] == {"delivery_id": str(code_mail.pk)}
    assert job["status"] == "todo"


def test_mail_is_sent_after_the_request_not_in_it(code_mail: Delivery) -> None:
    assert code_mail.state == "queued"
    assert not mail.outbox


def test_recipient_and_content_are_stored_encrypted_only(
    code_mail: Delivery, code_sms: Delivery
) -> None:
    stored = everything_stored()
    assert str(code_mail.pk) in stored
    for secret in (CODE, "alice@", "4915112345678", "to sign in"):
        assert secret not in stored


class Abandoned(Exception):
    """Ends a transaction."""


def test_a_transaction_that_is_rolled_back_leaves_neither_row_nor_job(alice: User) -> None:
    def cause() -> None:
        with transaction.atomic():
            kept.append(notices.queue_notice(alice, "password_changed"))
            assert jobs_of(kept[0])
            raise Abandoned

    kept: list[Delivery] = []
    with pytest.raises(Abandoned):
        cause()
    assert not Delivery.objects.exists()
    assert not jobs_of(kept[0])


@pytest.mark.parametrize("outcome", ["sent", "451", "550", "fault"])
def test_no_log_contains_recipient_body_or_code(
    mailbox: Mailbox, code_mail: Delivery, caplog: pytest.LogCaptureFixture, outcome: str
) -> None:
    caplog.set_level("DEBUG")
    if outcome in {"451", "550"}:
        mailbox.rcpt = f"{outcome} alice@example.com is not here"
    if outcome == "fault":
        # Decrypts to what no mail can be made of.
        code_mail.payload = "not a token of ours"
        code_mail.save()
    run(code_mail)
    lines = [
        record.getMessage() for record in caplog.records if not record.name.startswith("mail.")
    ]
    assert any("outbox.messages" in record.name for record in caplog.records)
    for line in lines:
        assert CODE not in line
        assert "alice@" not in line
        assert "to sign in" not in line
    assert any("a***@example.com" in line for line in lines)


def test_a_message_that_expires_while_it_waits_is_not_sent(alice: User) -> None:
    delivery = queue.send_mail(
        "alice@example.com",
        "email_code",
        CONTEXT,
        organization_id=None,
        expires_at=timezone.now() - timedelta(seconds=1),
    )
    expired = run(delivery)
    assert (expired.state, expired.error, expired.payload) == ("given_up", "expired", "")
    assert expired.attempts == 0
    assert not mail.outbox


def test_a_message_is_given_up_if_its_next_attempt_would_be_too_late(
    mailbox: Mailbox,
) -> None:
    mailbox.rcpt = "451 later"
    delivery = queue.send_mail(
        "alice@example.com",
        "email_code",
        CONTEXT,
        organization_id=None,
        expires_at=timezone.now() + timedelta(seconds=10),
    )
    late = run(delivery)
    assert (late.state, late.error, late.payload) == ("given_up", "smtp_451", "")
