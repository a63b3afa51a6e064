"""Messages that were sent, read from the delivery rows before a worker wipes them."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from common.crypto import decrypt
from outbox.models import Delivery


def messages(kind: str = "", template: str = "") -> list[dict[str, Any]]:
    """Return the contents of queued messages, oldest first."""
    rows = Delivery.objects.order_by("created_at", "id")
    rows = rows.filter(kind=kind) if kind else rows
    rows = rows.filter(template=template) if template else rows
    return [json.loads(decrypt(row.payload)) for row in rows if row.payload]


def notices_to(address: str) -> list[str]:
    """Return the names of the mails queued to an address."""
    return [mail["template"] for mail in messages("mail") if mail["to"] == address]


def sms_code() -> str:
    """Return the code of the last text message."""
    found = re.search(r"\b[0-9]{6}\b", messages("sms")[-1]["text"])
    assert found is not None
    return found[0]


def email_code() -> str:
    """Return the code of the last mail with one."""
    return str(messages("mail", "email_code")[-1]["context"]["code"])


def secret_of(mail: dict[str, Any], field: str = "link") -> str:
    """Return the token or code in the fragment of a mail's link."""
    (secret,) = dict(parse_qsl(urlsplit(mail["context"][field]).fragment)).values()
    return str(secret)
