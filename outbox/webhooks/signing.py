"""Signatures of webhooks.

Source: https://github.com/standard-webhooks/standard-webhooks, spec 1.0.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32


def new_secret() -> str:
    """Return a new secret in its published format."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(
    message_id: str, body: bytes, *, sent_at: int, signing_secrets: Sequence[str]
) -> dict[str, str]:
    """Return the headers of a message. sent_at: Unix seconds of this attempt.

    signing_secrets: two during a rotation; a receiver accepts a message if one signature matches.
    """
    signed = b"%s.%d.%s" % (message_id.encode(), sent_at, body)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": " ".join(_signature(secret, signed) for secret in signing_secrets),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
