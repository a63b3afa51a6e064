"""For development: print text messages to standard output."""

from accounts.delivery import console, inbox


def send(to: str, text: str) -> None:
    """Print a text message."""
    console.show(inbox.InboxMessage("SMS", to, "", text))
