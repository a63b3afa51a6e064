"""Examples of requests and responses, recorded from the tests.

``examples.json`` has one exchange of each operation: ``{"POST /v1/auth/login": {"request": …,
"response": …}}``. ``pytest --record-examples`` writes it (``tests/recorder.py``).
"""

import functools
import json
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("examples.json")
JSON: Final = "application/json"


@functools.cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return the exchanges by ``METHOD /path``."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def add(operation: dict[str, Any], key: str) -> None:
    """Add the recorded exchange of an operation, if there is one, to its bodies."""
    exchange = recorded().get(key, {})
    body = operation.get("requestBody", {}).get("content", {})
    if "request" in exchange and len(body) == 1:
        next(iter(body.values()))["example"] = exchange["request"]
    answer = operation["responses"][min(operation["responses"])].get("content", {})
    if "response" in exchange and JSON in answer:
        answer[JSON]["example"] = exchange["response"]
