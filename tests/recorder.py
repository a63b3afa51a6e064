"""Record an example of each operation for the OpenAPI document: ``pytest --record-examples``.

Of the exchanges in a run, the best one of each operation is written to
``common/openapi/examples.json``: with most fields, and then the shortest. An example that is there
is replaced by a better one only; one that the document no longer allows is replaced by any.

Secrets, ids, addresses and times are replaced before they are compared, always by the same values.
"""

import fcntl
import functools
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from common.openapi.examples import FILE
from tests.conformance import JSON, Exchange, document, template_of

Example = dict[str, Any]

MAX_LISTED: Final = 2
MAX_CHARACTERS: Final = 4000
# In tests of hostile bodies and random data no exchange is a good example.
EXCLUDED: Final = "tests/rules/"
# The earliest time of an exchange. Some fields have only its day or month, which begin then.
BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)

FIXED: Final = {
    "password": "correct horse battery staple",
    "current_password": "an older horse battery staple",
    "address": "192.0.2.7",
    "hint": "p3Xw",
    "org_id": 1,
    "port": 49152,
}
SECRET_KEY: Final = re.compile(
    r"(^|_)(secret|secret_id|secret_access_key|token|codes?|verifier|challenge|signature|png|verification_id"
    r"|challenge_id|recovery_id)$"
)
TIME_KEY: Final = re.compile(r"(^|_)(at|time|since|until|from)$")
RANDOM: Final = re.compile(
    r"(?P<jwt>eyJ[\w-]+\.[\w-]+\.[\w-]+)|(?P<uuid>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<cursor>(?<=cursor=)[^&]+)|(?P<day>20\d{6}(T\d{6}Z)?(?=%2F|[&/]|$))"
    r"|(?P<token>(?!AWS4-HMAC-SHA256)[A-Za-z0-9_+-]{16,}=*)"
)
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)")
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
MONTH: Final = re.compile(r"\d{4}-\d\d")
ORIGIN: Final = re.compile(r"https?://(testserver|localhost|127\.0\.0\.1|\[::1\])(:\d+)?")
HOST: Final = re.compile(r"\b(testserver|localhost)\b")
LOOPBACK: Final = re.compile(r"(?<![\d.])127\.0\.0\.\d+(?![\d.])")
# What a secret begins with stays, so that its kind can be seen.
PREFIX: Final = re.compile(r"^(whsec_|zk_[a-z]+_|zp-|msg_)?")


class Masks:
    """Replacements in one exchange: the same for the same value, in the order of appearance."""

    def __init__(self, exchange: Example) -> None:
        """exchange: all of it, because times keep their distances."""
        moments = [moment for key, value in leaves(exchange) if (moment := moment_of(key, value))]
        self._first = min(moments, default=BEGIN)
        self._ids: dict[str, str] = {}

    def masked(self, value: Any, key: str = "") -> Any:
        """Return a value of JSON with its replacements. key: of the object that contains it."""
        if isinstance(value, dict):
            return {name: self.masked(inner, name) for name, inner in sorted(value.items())}
        if isinstance(value, list):
            return [self.masked(inner, key) for inner in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        if key in FIXED:
            return FIXED[key]
        moment = moment_of(key, value)
        if moment is not None:
            return self._moved(value, moment)
        if isinstance(value, str):
            return self._masked_text(value, is_secret=SECRET_KEY.search(key) is not None)
        if key == "id":
            return 1
        return 1.5 if key.endswith("_ms") and isinstance(value, float) else value

    def _moved(self, value: Any, moment: datetime) -> Any:
        minutes = round((moment - self._first) / timedelta(minutes=1))
        moved = BEGIN + timedelta(minutes=minutes)
        if isinstance(value, int):
            return int(moved.timestamp())
        return f"{moved:%Y-%m-%dT%H:%M:%SZ}" if "T" in value else f"{moved:%Y-%m-%d}"[: len(value)]

    def _masked_text(self, text: str, *, is_secret: bool) -> str:
        text = HOST.sub("zonal.example.com", ORIGIN.sub("https://zonal.example.com", text))
        text = LOOPBACK.sub("192.0.2.7", text)
        is_known = any(found["jwt"] or found["uuid"] for found in RANDOM.finditer(text))
        return filler(text) if is_secret and not is_known else RANDOM.sub(self._masked_part, text)

    def _masked_part(self, found: re.Match[str]) -> str:
        if found["jwt"]:
            return "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"
        if found["uuid"]:
            number = len(self._ids) + 1
            return self._ids.setdefault(found[0], f"01a2048d-903a-75bd-a141-b13a517b{number:04d}")
        if found["cursor"] or found["day"]:
            return "cD0yMjk0" if found["cursor"] else f"{BEGIN:%Y%m%dT%H%M%SZ}"[: len(found[0])]
        is_random = re.search("[0-9]", found[0]) and re.search("[A-Za-z]", found[0])
        return filler(found[0]) if is_random else found[0]


def filler(secret: str) -> str:
    """Return a text of the same length, alphabet and prefix that gives nothing away."""
    prefix = PREFIX.match(secret)[0]  # type: ignore[index]  # it matches nothing, too
    rest = secret.removeprefix(prefix)
    if rest.isdecimal():
        letters = "123456"
    elif re.fullmatch(r"[0-9a-f]{16,}", rest):
        letters = "0123456789abcdef"
    else:
        letters = "A2B3C4D5E6F7" if rest.upper() == rest else "a2B3c4D5e6F7"
    endless = cycle(letters)
    # Groups stay where they are; in a longer token a hyphen is one of its random characters.
    groups = rest.split("-") if re.fullmatch(r"\w{4}(-\w{4})+", rest) else [rest[:43]]
    return prefix + "-".join("".join(islice(endless, len(group))) for group in groups)


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in a value of JSON with the names of their fields."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else ((key, inner) for inner in value)
        for name, inner in items:
            yield from leaves(inner, name)
    else:
        yield key, value


def moment_of(key: str, value: Any) -> datetime | None:
    """Return the time that a field holds, None if it holds another value."""
    if isinstance(value, str) and TIME.fullmatch(value):
        return datetime.fromisoformat(value)
    if isinstance(value, str) and DAY.fullmatch(value):
        return datetime.fromisoformat(f"{value}T00:00:00Z")
    if isinstance(value, str) and MONTH.fullmatch(value):
        return datetime.fromisoformat(f"{value}-01T00:00:00Z")
    if type(value) is int and TIME_KEY.search(key) and value > BEGIN.timestamp() / 2:
        return datetime.fromtimestamp(value, UTC)
    return None


def example_of(exchange: Exchange, sent: bytes) -> Example:
    """Return the bodies of an exchange, masked, without long lists in the response."""
    is_csv = exchange.request_body is None and exchange.method == "POST"
    request = sent.decode("utf-8", "replace") if is_csv else exchange.request_body
    bodies = {"request": request, "response": shortened(exchange.body)}
    found = {name: body for name, body in bodies.items() if body}
    masked: Example = Masks(found).masked(found)
    return masked


def shortened(value: Any) -> Any:
    """Return a value of JSON with the first objects of each list."""
    if isinstance(value, dict):
        return {name: shortened(inner) for name, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [shortened(inner) for inner in value[:MAX_LISTED]]
    return value


def is_valid(key: str, example: Example) -> bool:
    """True if the document allows the example, whose request may have no body."""
    declared = contents(key)
    if not declared.keys() - {"request"} <= example.keys() <= declared.keys():
        return False
    validators = ((declared[name], body) for name, body in example.items())
    return all(found is None or found.is_valid(body) for found, body in validators)


@functools.cache
def contents(key: str) -> dict[str, jsonschema_rs.Draft202012Validator | None]:
    """Return the bodies of an operation that have examples; None for one that is not JSON."""
    method, path = key.split(" ")
    operation = document()["paths"].get(path, {}).get(method.lower())
    if operation is None:
        return {}
    request = operation.get("requestBody", {}).get("content", {})
    response = operation["responses"][min(operation["responses"])].get("content", {})
    found = {name: body for name, body in (("request", request), ("response", response)) if body}
    return {
        name: validator(body[JSON]["schema"]) if JSON in body else None
        for name, body in found.items()
        if JSON in body or name == "request"
    }


def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a schema in the document."""
    whole = {**schema, "components": document()["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def rank(example: Example) -> tuple[Any, ...]:
    """Return what compares examples of one operation; the best has the highest."""
    text = json.dumps(example, separators=(",", ":"))
    # Escapes, markup, blanks at the ends and repetitions are of tests of odd values.
    is_odd = re.search(r"""\\|<|" | "|(.)\1{9}""", text.replace('\\"', ""))
    fields = [{key for key, value in leaves(body) if value} for body in example.values()]
    is_usual = not is_odd and len(text) <= MAX_CHARACTERS
    return len(example), is_usual, sum(map(len, fields)), -len(text), text


class Recorder:
    """The best exchange of each operation in this process."""

    def __init__(self) -> None:
        self.best: dict[str, Example] = {}

    def offer(self, exchange: Exchange, sent: bytes) -> None:
        """Keep an exchange if it is the best of its operation."""
        is_excluded = os.environ.get("PYTEST_CURRENT_TEST", "").startswith(EXCLUDED)
        if exchange.status >= 300 or exchange.is_console or is_excluded:
            return
        key = f"{exchange.method} {template_of(exchange.path.partition('?')[0])}"
        if contents(key):
            self._keep(key, example_of(exchange, sent))

    def _keep(self, key: str, example: Example) -> None:
        kept = self.best.get(key)
        if is_valid(key, example) and (kept is None or rank(example) > rank(kept)):
            self.best[key] = example

    def save(self, file: Path = FILE) -> None:
        """Write what is better than what the file has. Processes of a run wait for each other."""
        with file.open("r+", encoding="utf-8") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            for key, example in json.loads(opened.read()).items():
                self._keep(key, example)
            opened.seek(0)
            opened.truncate()
            json.dump(self.best, opened, indent=1, sort_keys=True, ensure_ascii=False)
            opened.write("\n")
