"""The README's Python runs as it is printed."""

import re
from pathlib import Path

import pytest

import zonal
from tests.clients.conftest import Platform

pytestmark = pytest.mark.slow

README = Path(__file__).resolve().parents[3] / "clients/python/README.md"
PRINTED = "http://127.0.0.1:8000"
PERSON = {"email": "you@example.com", "password": "a long sentence of yours"}


def test_the_readmes_python_runs(platform: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    with zonal.Client(platform.url) as anonymous:
        anonymous.request("POST", "/v1/auth/signup", body=PERSON)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block.replace(PRINTED, platform.url), names)  # noqa: S102 - our own text
    for name in ("client", "later"):
        getattr(names[name], "close")()  # noqa: B009 - object has no such attribute
    printed = capsys.readouterr().out
    assert "[{'id': 1, 'name': 'first'}]\n5000050000 100000\n" in printed
    assert "42P01 1 15\n" in printed
    assert printed.endswith("sandbox\n[{'n': 1}]\n")
