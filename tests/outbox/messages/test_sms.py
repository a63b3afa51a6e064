"""Text messages through a local server that speaks Twilio's API, and into a folder."""

import base64
import json
import stat
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from outbox.failures import retry_after_s
from outbox.messages import queue
from outbox.models import Delivery
from tests.outbox.messages.support import CODE, NO_JSON, Twilio, jobs_of, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent_by_twilio(twilio: Twilio, code_sms: Delivery) -> Delivery:
    return code_sms


def test_a_text_message_is_passed_to_twilio(twilio: Twilio, sent_by_twilio: Delivery) -> None:
    sent = run(sent_by_twilio)
    assert (sent.state, sent.payload, sent.hint) == ("sent", "", "***78")
    expected = base64.b64encode(b"AC1:twilio-auth-token").decode()
    assert twilio.requests == [
        {
            "To": "+4915112345678",
            "From": "+15005550006",
            "Body": f"Your code: {CODE}",
            "path": "/2010-04-01/Accounts/AC1/Messages.json",
            "auth": f"Basic {expected}",
        }
    ]


def test_a_messaging_service_may_be_the_sender(
    settings: Settings, twilio: Twilio, sent_by_twilio: Delivery
) -> None:
    settings.SMS_OPTIONS = settings.SMS_OPTIONS | {"sender": "MG1"}
    run(sent_by_twilio)
    assert twilio.requests[0]["MessagingServiceSid"] == "MG1"
    assert "From" not in twilio.requests[0]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_respected(twilio: Twilio, sent_by_twilio: Delivery, status: int) -> None:
    twilio.answers = [(status, 20429, {"Retry-After": "300"})]
    before = timezone.now()
    delayed = run(sent_by_twilio)
    assert (delayed.state, delayed.error) == ("queued", "twilio_20429")
    assert delayed.next_attempt_at is not None
    assert timedelta(seconds=300) <= delayed.next_attempt_at - before < timedelta(seconds=310)
    assert run(sent_by_twilio).state == "sent"


@pytest.mark.parametrize("code", [0, NO_JSON])
def test_an_error_of_twilio_is_retried(twilio: Twilio, sent_by_twilio: Delivery, code: int) -> None:
    twilio.answers = [(500, code, {})]
    delayed = run(sent_by_twilio)
    assert (delayed.state, delayed.error) == ("queued", "twilio_500")
    assert jobs_of(sent_by_twilio)[-1]["scheduled_at"] == delayed.next_attempt_at


def test_an_invalid_number_is_given_up_immediately(
    twilio: Twilio, sent_by_twilio: Delivery
) -> None:
    twilio.answers = [(400, 21211, {})]
    refused = run(sent_by_twilio)
    assert (refused.state, refused.error, refused.payload) == ("given_up", "twilio_21211", "")


def test_a_problem_of_our_account_is_retried(twilio: Twilio, sent_by_twilio: Delivery) -> None:
    twilio.answers = [(401, 20003, {}), (400, 21606, {})]
    assert run(sent_by_twilio).error == "twilio_20003"
    assert run(sent_by_twilio).error == "twilio_21606"
    assert run(sent_by_twilio).state == "sent"


def test_a_slow_twilio_ends_in_a_timeout(twilio: Twilio, sent_by_twilio: Delivery) -> None:
    twilio.delay_s = 1.0
    delayed = run(sent_by_twilio)
    assert (delayed.state, delayed.error) == ("queued", "twilio_timeout")


def test_a_text_message_is_delayed_while_twilio_is_down(
    settings: Settings, code_sms: Delivery
) -> None:
    settings.SMS_BACKEND = "outbox.messages.sms.twilio.send"
    settings.SMS_OPTIONS = {
        "account": "AC1",
        "username": "AC1",
        "password": "x",
        "sender": "+15005550006",
        "base_url": "http://127.0.0.1:1",
        "timeout_s": 0.5,
    }
    delayed = run(code_sms)
    assert (delayed.state, delayed.error) == ("queued", "twilio_away")


def test_the_file_contains_one_json_line_per_message(sms_folder: Path, code_sms: Delivery) -> None:
    assert run(code_sms).state == "sent"
    path = sms_folder / "messages.jsonl"
    [line] = path.read_text().splitlines()
    assert json.loads(line) == {"to": "+4915112345678", "text": f"Your code: {CODE}"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_backend_no_message_is_queued(settings: Settings) -> None:
    assert queue.is_sms_configured()
    settings.SMS_BACKEND = ""
    assert not queue.is_sms_configured()
    with pytest.raises(queue.SmsNotConfigured):
        queue.send_sms("+4915112345678", "hello", organization_id=None)
    assert not Delivery.objects.exists()


@pytest.mark.parametrize(
    ("to", "text"),
    [("015112345678", "x"), ("+49 151", "x"), ("+٤٩١٥١١٢٣٤٥", "x"), ("+4915112345678", "")],
)
def test_an_impossible_text_message_is_refused_before_it_is_queued(to: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"E\.164|characters"):
        queue.send_sms(to, text, organization_id=None)


NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 0),
        ("soon", 0),
        ("-5", 0),
        ("7", 7),
        ("99999999999", 3600),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0),
        ("Sun, 01 Mar 2026 00:00:20 -0000", 20),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str, seconds: int) -> None:
    assert retry_after_s(header, now=NOW) == seconds
