"""The code of docs/webhooks.md accepts what is sent, and nothing else."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accounts.webhooks import events, signing

PAGE = (Path(__file__).resolve().parents[3] / "docs/webhooks.md").read_text()
BODY = b'{"type": "webhook.test"}'


@pytest.fixture
def verify() -> Callable[..., Any]:
    """Return the documented function."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the page's own text
    found: Callable[..., Any] = names["verify"]
    return found


def headers(*secrets: str, at: int) -> dict[str, str]:
    return signing.headers("msg_1", BODY, sent_at=at, signing_secrets=secrets)


def test_the_documented_code_accepts_what_is_signed(verify: Callable[..., Any]) -> None:
    secret, other = signing.new_secret(), signing.new_secret()
    now = int(time.time())
    assert verify(secret, headers(secret, at=now), BODY) == {"type": "webhook.test"}
    # While a secret is replaced there are two signatures.
    assert verify(secret, headers(other, secret, at=now), BODY)


def test_the_documented_code_refuses_the_rest(verify: Callable[..., Any]) -> None:
    secret, now = signing.new_secret(), int(time.time())
    good = headers(secret, at=now)
    wrong: list[tuple[dict[str, str], bytes]] = [
        (headers(signing.new_secret(), at=now), BODY),
        (good, BODY + b" "),
        (good | {"webhook-id": "msg_2"}, BODY),
        (good | {"webhook-signature": ""}, BODY),
        (good | {"webhook-signature": "v1,"}, BODY),
        (headers(secret, at=now - 600), BODY),
        (headers(secret, at=now + 600), BODY),
    ]
    for sent, body in wrong:
        with pytest.raises(ValueError, match="webhook"):
            verify(secret, sent, body)


def test_every_event_is_documented() -> None:
    for event in (*events.EVENTS, events.TEST):
        assert f"| `{event}` |" in PAGE
