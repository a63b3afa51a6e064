"""A developer reads mails in the browser; no one else can."""

from pathlib import Path

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from pytest_django.fixtures import Settings

from outbox.messages import development
from outbox.messages.sms import console as sms_console
from tests.cast import HANDLER


@pytest.fixture
def developer(settings: Settings, tmp_path: Path) -> Client:
    """Return a browser of an installation without messages."""
    settings.DATA_DIR = tmp_path
    client = Client()
    client.handler = HANDLER
    return client


def send(subject: str, text: str = "") -> None:
    development.EmailBackend().send_messages(
        [EmailMessage(subject, text, to=["alice@example.com"])]
    )


def test_mails_and_messages_are_shown_the_latest_first(developer: Client, tmp_path: Path) -> None:
    assert "No message yet" in developer.get("/inbox").content.decode()
    send("Your code", "493817 or http://localhost:8000/console/recovery#1 <script>")
    sms_console.send("+4915112345678", "Your code: 271828")
    response = developer.get("/inbox")
    html = response.content.decode()
    assert html.index("271828") < html.index("493817")
    assert 'href="http://localhost:8000/console/recovery#1"' in html
    assert "&lt;script&gt;" in html
    assert response["Cache-Control"] == "no-store"
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in (tmp_path / "inbox").iterdir())


def test_only_the_latest_are_kept(developer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(development, "MAX_MESSAGES", 2)
    for subject in ("first", "second", "third"):
        send(subject)
    assert [message.subject for message in development.messages()] == ["third", "second"]


def test_production_has_no_inbox(developer: Client, settings: Settings) -> None:
    send("Your code")
    settings.IS_PRODUCTION = True
    assert developer.get("/inbox").status_code == 404


@pytest.mark.parametrize(
    "request_of", [{"REMOTE_ADDR": "192.0.2.7"}, {"HTTP_X_FORWARDED_FOR": "192.0.2.7"}]
)
def test_another_machine_sees_no_inbox(developer: Client, request_of: dict[str, str]) -> None:
    send("Your code")
    assert developer.get("/inbox", **request_of).status_code == 404  # type: ignore[arg-type]  # the stubs take headers for parameters
