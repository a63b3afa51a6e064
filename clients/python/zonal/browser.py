"""What a sign-in in a browser is begun with: a secret verifier and its public challenge."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field

from zonal.types import TerminalStarted


@dataclass(frozen=True)
class BrowserSignIn:
    """A sign-in that waits for its user.

    request: its ``page_url`` is for the browser, its ``matching_code`` for the eyes: the page shows
    the same. verifier: what makes the page's code worth something; it never leaves this program
    before the exchange.
    """

    request: TerminalStarted
    verifier: str = field(repr=False)


def new_verifier() -> str:
    """Return 256 random bits (RFC 7636, section 4.1)."""
    return secrets.token_urlsafe(32)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return urlsafe_b64encode(hashed).decode().rstrip("=")
