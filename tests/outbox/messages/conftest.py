"""Providers on loopback for the tests of the delivery."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from accounts.models import User
from outbox.messages import queue
from outbox.models import Delivery
from tests.outbox.messages.support import (
    CODE,
    Mailbox,
    Twilio,
    smtp_options,
    smtp_server,
    twilio_server,
)


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[Mailbox]:
    """Return what a real SMTP server on loopback takes."""
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        settings.EMAIL_BACKEND = "outbox.messages.mail.EmailBackend"
        settings.MAIL_OPTIONS = smtp_options(port)
        yield mailbox


@pytest.fixture
def twilio(settings: Settings) -> Iterator[Twilio]:
    """Return a Twilio on loopback, with the settings that point there."""
    with twilio_server() as server:
        settings.SMS_BACKEND = "outbox.messages.sms.twilio.send"
        settings.SMS_OPTIONS = {
            "account": "AC1",
            "username": "AC1",
            "password": "twilio-auth-token",
            "sender": "+15005550006",
            "base_url": server.url,
            "timeout_s": 0.5,
        }
        yield server


@pytest.fixture
def sms_folder(settings: Settings, tmp_path: Path) -> Path:
    """Return the folder that text messages become files in."""
    folder = tmp_path / "sms"
    settings.SMS_BACKEND = "outbox.messages.sms.file.send"
    settings.SMS_OPTIONS = {"folder": folder}
    return folder


@pytest.fixture
def code_mail(alice: User) -> Delivery:
    """Return a mail with a code to Alice, queued."""
    return queue.send_mail(
        "alice@example.com",
        "email_code",
        {"code": CODE, "purpose": "to sign in", "minutes": 10},
        organization_id=alice.organization_id,
        user_id=alice.pk,
    )


@pytest.fixture
def code_sms(alice: User) -> Delivery:
    """Return a text message with a code to Alice, queued."""
    return queue.send_sms(
        "+4915112345678", f"Your code: {CODE}", organization_id=alice.organization_id
    )
