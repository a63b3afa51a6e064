"""The object API's log: a line for each request, soon, and without secrets."""

import asyncio
import json
import select
import sys
from typing import Any

import pytest

from edgecache.brain.s3 import request_log
from edgecache.brain.s3.request_log import RequestLog


def line(**more: Any) -> dict[str, Any]:
    """Return a line's fields."""
    return {"method": "GET", "status": 200, **more}


async def test_lines_are_written_a_moment_later_in_their_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    requests = RequestLog("json", "INFO")
    for number in range(3):
        requests.write(line(key=f"a/{number}"))
    assert capsys.readouterr().err == ""
    await asyncio.sleep(2 * request_log.FLUSH_S)
    written = [json.loads(text) for text in capsys.readouterr().err.splitlines()]
    assert [each["key"] for each in written] == ["a/0", "a/1", "a/2"]
    assert {(each["event"], each["level"], each["status"]) for each in written} == {
        ("object_request", "info", 200)
    }
    assert all(each["timestamp"].endswith("+00:00") for each in written)


async def test_many_lines_are_written_together(capsys: pytest.CaptureFixture[str]) -> None:
    requests = RequestLog("json", "debug")
    for _ in range(request_log.MAX_WAITING_LINES):
        requests.write(line())
    assert len(capsys.readouterr().err.splitlines()) == request_log.MAX_WAITING_LINES
    await asyncio.sleep(2 * request_log.FLUSH_S)
    assert capsys.readouterr().err == ""


async def test_what_a_pipe_takes_in_one_piece_ends_with_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several brains write to one pipe."""
    written: list[str] = []
    requests = RequestLog("json", "info")
    monkeypatch.setattr(sys.stderr, "write", written.append)
    for number in range(100):
        requests.write(line(key="ä" * 150, number=number))
    requests.flush()
    monkeypatch.undo()
    assert len(written) > 5
    assert all(len(piece.encode()) <= select.PIPE_BUF and piece[-1] == "\n" for piece in written)
    lines = "".join(written).splitlines()
    assert [json.loads(each)["number"] for each in lines] == list(range(100))


@pytest.mark.parametrize("log_format", ["json", "console"])
async def test_a_key_that_looks_like_a_secret_is_redacted(
    capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    requests = RequestLog(log_format, "info")
    requests.write(line(key="https://me:word@example.com"))
    requests.write(line(key="two\nlines"))
    # Of a link whose question mark a client has encoded.
    requests.write(line(key="a.txt?zonal-expires=1&zonal-signature=5ecre7"))
    requests.flush()
    said = capsys.readouterr().err
    assert "word" not in said
    assert "5ecre7" not in said
    assert "example.com" in said
    assert len(said.splitlines()) == 3


async def test_lines_below_the_log_level_are_not_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    requests = RequestLog("console", "warning")
    requests.write(line())
    requests.flush()
    assert capsys.readouterr().err == ""
