"""For development: print text messages to standard output."""

from outbox.messages import development


def send(to: str, text: str) -> None:
    """Print a text message."""
    development.show(development.InboxMessage("SMS", to, "", text))
