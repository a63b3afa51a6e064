"""Mail through a real SMTP server on loopback, which takes, refuses, or is not there."""

import socket
from collections.abc import Sequence
from datetime import timedelta

import pytest
import time_machine
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils import timezone
from pytest_django.fixtures import Settings

from outbox.models import Delivery
from tests.outbox.messages.support import (
    CODE,
    Mailbox,
    Twilio,
    jobs_of,
    run,
    smtp_options,
    smtp_server,
)
from tests.ports import free_port

pytestmark = pytest.mark.django_db


def test_a_mail_arrives_as_text_and_html(mailbox: Mailbox, code_mail: Delivery) -> None:
    assert run(code_mail).state == "sent"
    [mail] = mailbox.mails
    assert mailbox.recipients == ["alice@example.com"]
    assert mail["To"] == "alice@example.com"
    assert mail["Subject"] == "Your code – Zonal"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Message-ID"] == f"<{code_mail.pk}@localhost>"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert f"Your code to sign in: {CODE}" in text.get_content()
    assert CODE in html.get_content()


def test_the_content_is_wiped_once_sent(mailbox: Mailbox, code_mail: Delivery) -> None:
    assert code_mail.payload
    sent = run(code_mail)
    assert (sent.payload, sent.error, sent.next_attempt_at) == ("", "", None)
    assert sent.hint == "a***@example.com"
    assert sent.finished_at is not None


def test_a_repeated_job_sends_nothing_more(mailbox: Mailbox, code_mail: Delivery) -> None:
    run(code_mail)
    assert run(code_mail).attempts == 1
    assert len(mailbox.mails) == 1


@pytest.mark.parametrize("step", ["rcpt", "data"])
def test_a_temporary_refusal_is_retried(mailbox: Mailbox, code_mail: Delivery, step: str) -> None:
    setattr(mailbox, step, "451 alice@example.com: try again later")
    delayed = run(code_mail)
    assert (delayed.state, delayed.error) == ("queued", "smtp_451")
    setattr(mailbox, step, "")
    assert run(code_mail).state == "sent"
    assert len(mailbox.mails) == 1


@pytest.mark.parametrize("step", ["rcpt", "data"])
def test_a_permanent_refusal_is_given_up_and_wiped(
    mailbox: Mailbox, code_mail: Delivery, step: str
) -> None:
    setattr(mailbox, step, "550 alice@example.com: no such user")
    refused = run(code_mail)
    assert (refused.state, refused.error) == ("given_up", "smtp_550")
    assert refused.payload == ""
    assert len(jobs_of(code_mail)) == 1


@pytest.mark.parametrize("step", ["rcpt", "data"])
@pytest.mark.parametrize(
    "reply",
    [
        "554 5.7.1 alice@example.com: Relay access denied",
        "550 5.4.5 Daily user sending limit exceeded",
        "553 5.1.8 Bad sender",
    ],
)
def test_a_refusal_of_the_platform_itself_is_retried_and_its_content_kept(
    mailbox: Mailbox, code_mail: Delivery, step: str, reply: str
) -> None:
    setattr(mailbox, step, reply)
    delayed = run(code_mail)
    assert (delayed.state, delayed.error) == ("queued", f"smtp_{reply[:3]}")
    assert delayed.payload
    setattr(mailbox, step, "")
    assert run(code_mail).state == "sent"


def test_an_unknown_recipient_is_given_up_with_an_enhanced_status_too(
    mailbox: Mailbox, code_mail: Delivery
) -> None:
    mailbox.rcpt = "550 5.1.1 alice@example.com: no such user, see https://example.com/5.7.1"
    assert run(code_mail).state == "given_up"


def test_a_mail_is_delayed_while_the_server_is_down(
    settings: Settings, code_mail: Delivery
) -> None:
    port = free_port()
    settings.EMAIL_BACKEND = "outbox.messages.mail.EmailBackend"
    settings.MAIL_OPTIONS = smtp_options(port)
    before = timezone.now()
    delayed = run(code_mail)
    assert (delayed.state, delayed.error) == ("queued", "mail_server_away")
    assert delayed.next_attempt_at is not None
    assert timedelta(seconds=15) <= delayed.next_attempt_at - before < timedelta(seconds=20)
    # The next attempt is a job of its own, in the row's transaction.
    assert jobs_of(code_mail)[-1]["scheduled_at"] == delayed.next_attempt_at
    mailbox = Mailbox()
    with smtp_server(mailbox, port):
        assert run(code_mail).state == "sent"
    assert len(mailbox.mails) == 1


def test_a_silent_server_ends_in_a_timeout(settings: Settings, code_mail: Delivery) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        settings.EMAIL_BACKEND = "outbox.messages.mail.EmailBackend"
        settings.MAIL_OPTIONS = smtp_options(silent.getsockname()[1]) | {"timeout": 0.2}
        delayed = run(code_mail)
    assert (delayed.state, delayed.error) == ("queued", "mail_server_away")


def test_a_relay_that_scans_a_mail_before_it_accepts_it_gets_it_once(
    settings: Settings, mailbox: Mailbox, code_mail: Delivery
) -> None:
    settings.MAIL_OPTIONS = settings.MAIL_OPTIONS | {"timeout": 0.2}
    mailbox.data_delay_s = 0.6
    assert run(code_mail).state == "sent"
    assert len(mailbox.mails) == 1


def test_a_server_without_starttls_receives_nothing_unencrypted(
    settings: Settings, mailbox: Mailbox, code_mail: Delivery
) -> None:
    settings.MAIL_OPTIONS = settings.MAIL_OPTIONS | {"use_tls": True}
    delayed = run(code_mail)
    assert (delayed.state, delayed.error) == ("queued", "smtp_SMTPNotSupportedError")
    assert not mailbox.mails


def test_waits_grow_until_the_delivery_fails_with_its_content_kept(
    settings: Settings, code_mail: Delivery
) -> None:
    settings.EMAIL_BACKEND = "outbox.messages.mail.EmailBackend"
    settings.MAIL_OPTIONS = smtp_options(free_port())
    start = timezone.now()
    waits = []
    with time_machine.travel(start, tick=False) as clock:
        while run(code_mail).state == "queued":
            assert code_mail.next_attempt_at is not None
            waits.append((code_mail.next_attempt_at - timezone.now()).total_seconds())
            clock.move_to(code_mail.next_attempt_at)
        took = timezone.now() - start
    assert len(waits) == 9
    assert waits == sorted(waits)
    assert timedelta(hours=1) < took < timedelta(hours=4)
    assert (code_mail.state, code_mail.attempts) == ("failed", 10)
    assert code_mail.payload


def test_a_crash_of_the_backend_is_retried_and_its_text_is_not_kept(
    settings: Settings, code_mail: Delivery, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = "tests.outbox.messages.test_mail.FaultyBackend"
    delayed = run(code_mail)
    assert (delayed.state, delayed.error) == ("queued", "fault_RuntimeError")
    assert "alice@" not in caplog.text
    assert "test_mail.py" in caplog.text


@pytest.mark.parametrize(
    ("answer", "state", "error", "wait_s"),
    [
        ((422, 300, {}), "given_up", "mail_service_refused", 0),
        ((401, 10, {}), "queued", "mail_service_401", 15),
        ((429, 429, {"Retry-After": "120"}), "queued", "mail_service_429", 120),
        ((500, 100, {}), "queued", "mail_service_500", 15),
    ],
)
def test_responses_of_a_mail_service_are_classified(
    settings: Settings,
    twilio: Twilio,
    code_mail: Delivery,
    answer: tuple[int, int, dict[str, str]],
    state: str,
    error: str,
    wait_s: int,
) -> None:
    # The server on loopback answers any API the same way.
    twilio.answers = [answer]
    settings.EMAIL_BACKEND = "anymail.backends.postmark.EmailBackend"
    settings.MAIL_OPTIONS = {"server_token": "postmark-token", "api_url": f"{twilio.url}/"}
    before = timezone.now()
    settled = run(code_mail)
    assert (settled.state, settled.error) == (state, error)
    if settled.next_attempt_at is not None:
        waited = (settled.next_attempt_at - before).total_seconds()
        assert wait_s <= waited < wait_s + 10


def test_a_mail_is_delayed_while_the_mail_service_is_down(
    settings: Settings, code_mail: Delivery
) -> None:
    settings.EMAIL_BACKEND = "anymail.backends.postmark.EmailBackend"
    settings.MAIL_OPTIONS = {"server_token": "postmark-token", "api_url": "http://127.0.0.1:1/"}
    delayed = run(code_mail)
    assert (delayed.state, delayed.error) == ("queued", "mail_service_away")


class FaultyBackend(BaseEmailBackend):
    """Raises what holds the recipient."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        raise RuntimeError("could not send to alice@example.com")
