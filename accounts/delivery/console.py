"""For development: print messages to standard output, never through the structured log."""

import sys
from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend


def show(kind: str, to: str, *lines: str) -> None:
    """Print one message for the developer."""
    text = "\n".join([f"--- {kind} to {to}", *lines, "---", ""])
    sys.stdout.write(text)
    sys.stdout.flush()


class EmailBackend(BaseEmailBackend):
    """A mail backend that prints subject and text; the HTML form would hide the code."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Print the messages."""
        for message in email_messages:
            show(
                "mail", ", ".join(message.recipients()), str(message.subject), "", str(message.body)
            )
        return len(email_messages)
