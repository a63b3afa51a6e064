"""Log lines: JSON or console text, without tickets."""

import json
import logging
from collections.abc import Callable

import pytest

from edgecache.worker.logs import ConsoleLines, JsonLines
from tests.edgecache.worker.running import Worker, unmeasured


def record(message: str, **fields: object) -> logging.LogRecord:
    """Return a record with fields."""
    made = logging.LogRecord("edgecache.worker.x", logging.WARNING, "f", 1, message, (), None)
    vars(made).update(fields)
    return made


def test_a_mistyped_name_is_in_the_first_lines(workers: Callable[..., Worker]) -> None:
    environment = unmeasured() | {"ZLOG_LEVLE": "debug", "ZLOG_FORMAT": "json"}
    lines = [json.loads(line) for line in workers(environment=environment).start().log.splitlines()]
    said = [line["reason"] for line in lines if line["event"] == "setting_unknown"]
    assert "ZLOG_LEVLE is set, but is no setting. Did you mean ZLOG_LEVEL?" in said
    assert not any("ZLOG_FORMAT is set" in sentence for sentence in said)


def test_a_json_line_has_its_fields() -> None:
    said = json.loads(JsonLines().format(record("brain_away", reason="refused", retry_s=1.5)))
    assert said["event"] == "brain_away"
    assert (said["level"], said["reason"], said["retry_s"]) == ("warning", "refused", 1.5)
    assert said["timestamp"].endswith("Z")


def test_a_console_line_is_readable() -> None:
    line = ConsoleLines().format(record("brain_away", reason="refused"))
    assert line.split()[1:] == ["warning", "brain_away", "reason=refused"]


def test_an_exception_is_logged_with_its_traceback() -> None:
    try:
        int("broken")
    except ValueError as error:
        info = (ValueError, error, error.__traceback__)
    made = logging.LogRecord("x", logging.ERROR, "f", 1, "request_failed", (), info)
    assert "ValueError: invalid" in json.loads(JsonLines().format(made))["exception"]
    assert "ValueError: invalid" in ConsoleLines().format(made)


@pytest.mark.parametrize("lines", [JsonLines(), ConsoleLines()])
def test_tickets_are_redacted_and_hashes_are_not(lines: logging.Formatter) -> None:
    line = lines.format(record("x", wrong="A1_-" * 70, sha256="ab" * 32))
    assert "A1_-A1_-" not in line
    assert "[redacted]" in line
    assert "ab" * 32 in line


def test_a_field_cannot_inject_a_log_line() -> None:
    line = JsonLines().format(record("x", reason='a"\n{"event": "forged"}'))
    assert "\n" not in line
