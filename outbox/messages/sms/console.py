"""For development: print text messages to standard output."""

from outbox.messages import console, development


def send(to: str, text: str) -> None:
    """Print a text message."""
    console.show(development.InboxMessage("SMS", to, "", text))
