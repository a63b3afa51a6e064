"""For development: print messages to standard output, never through the structured log.

They are kept for the page /inbox as well (outbox/messages/development.py).
"""

import sys
from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from outbox.messages import development


def show(message: development.InboxMessage) -> None:
    """Print one message for the developer, and keep it."""
    head = f"--- {message.kind} to {message.to}"
    about = [message.subject, ""] if message.subject else []
    sys.stdout.write("\n".join([head, *about, message.text, "---", ""]))
    sys.stdout.flush()
    development.keep(message)


class EmailBackend(BaseEmailBackend):
    """A mail backend that prints subject and text; the HTML form would hide the code."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Print the messages."""
        for message in email_messages:
            to = ", ".join(message.recipients())
            show(development.InboxMessage("mail", to, str(message.subject), str(message.body)))
        return len(email_messages)
