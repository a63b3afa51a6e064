"""For development: messages are printed and kept for the page /inbox instead of being sent.

Printed to standard output, never through the structured log. Kept in one file each in
ZDATA_DIR/inbox, which only this user can read: they contain codes.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from common.ids import uuid7

MAX_MESSAGES: Final = 50


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A mail or SMS; ``at`` is in Unix seconds, '' is the subject of an SMS."""

    kind: str
    to: str
    subject: str
    text: str
    at: float = field(default_factory=time.time)

    @property
    def sent_at(self) -> datetime:
        """When it was sent."""
        return datetime.fromtimestamp(self.at, UTC)


class EmailBackend(BaseEmailBackend):
    """A mail backend that prints subject and text; the HTML form would hide the code."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Print the messages."""
        for message in email_messages:
            to = ", ".join(message.recipients())
            show(InboxMessage("mail", to, str(message.subject), str(message.body)))
        return len(email_messages)


def show(message: InboxMessage) -> None:
    """Print one message for the developer, and keep it."""
    head = f"--- {message.kind} to {message.to}"
    about = [message.subject, ""] if message.subject else []
    sys.stdout.write("\n".join([head, *about, message.text, "---", ""]))
    sys.stdout.flush()
    keep(message)


def keep(message: InboxMessage) -> None:
    """Keep a message, and delete all but the latest."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written aside: the page never reads half a file. Ids are in the order of time.
    aside = folder / f"{uuid7()}.new"
    aside.touch(mode=0o600)
    aside.write_text(json.dumps(asdict(message)))
    aside.rename(aside.with_suffix(".json"))
    for old in _files()[MAX_MESSAGES:]:
        old.unlink(missing_ok=True)


def messages() -> Iterator[InboxMessage]:
    """Return the kept messages, the latest first."""
    for file in _files():
        # Another process may have deleted it by now.
        with suppress(FileNotFoundError):
            yield InboxMessage(**json.loads(file.read_text()))


def _files() -> list[Path]:
    return sorted(_folder().glob("*.json"), reverse=True)


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "inbox"
