"""The code of docs/webhooks.md accepts what is sent, and nothing else."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outbox.webhooks import events, signing
from tests.deploy.tools import program
from tests.waiting import LIMIT_S

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).resolve().parents[3] / "docs/webhooks.md").read_text()
BODY = b'{"type": "webhook.test"}'


# Reads [secret, headers, body] and writes what the page's function returns, or what it throws.
RUNNER = """
import { readFileSync } from "node:fs";
const [secret, headers, body] = JSON.parse(readFileSync(0, "utf8"));
try {
  console.log(JSON.stringify({ body: verify(secret, headers, Buffer.from(body)) }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
"""


def code(language: str) -> str:
    """Return the page's only block in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def of_python() -> Callable[..., Any]:
    """Return the documented function."""
    names: dict[str, Any] = {}
    exec(code("python"), names)  # noqa: S102 - the page's own text
    found: Callable[..., Any] = names["verify"]
    return found


def of_javascript() -> Callable[..., Any]:
    """Return the documented function, run by Node.js."""
    node = program("node", package="nodejs")

    def verify(secret: str, headers: dict[str, str], body: bytes) -> Any:
        done = subprocess.run(
            [node, "--input-type=module", "-e", code("javascript") + RUNNER],
            input=json.dumps([secret, headers, body.decode()]),
            capture_output=True,
            text=True,
            timeout=4 * LIMIT_S,
            check=True,
        )
        answer = json.loads(done.stdout)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["body"]

    return verify


@pytest.fixture(params=[of_python, of_javascript], ids=["python", "javascript"])
def verify(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return the documented function of each language."""
    found: Callable[..., Any] = request.param()
    return found


def headers(*secrets: str, at: int) -> dict[str, str]:
    return signing.signed_headers("msg_1", BODY, sent_at=at, signing_secrets=secrets)


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
