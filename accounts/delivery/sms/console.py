"""For development: text messages are shown on standard output."""

from accounts.delivery import console


def send(to: str, text: str) -> None:
    """Show a text message."""
    console.show("SMS", to, text)
