"""The banner of `up`: lines that can be pasted."""

import shlex
from pathlib import Path

import pytest

from operations.embedded.banner import object_lines, show_banner
from operations.embedded.platform_processes import platform_recipe

ACCESS = {
    "bucket": "development",
    "access_key_id": "ZKEXAMPLE",
    "secret_access_key": "a/secret+with=signs",
}


def said(capsys: pytest.CaptureFixture[str], made: dict[str, object], **environ: str) -> str:
    """Print the banner and return its text."""
    show_banner(platform_recipe(environ), made, folders=[Path("/data")])
    return capsys.readouterr().out


def test_the_brains_ports_and_a_line_for_objects_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = said(capsys, {"cache": ACCESS})
    for word in ("http://127.0.0.1:9000", "8081", "8083", "s3://development/README.md"):
        assert word in text


def test_the_lines_can_be_pasted_into_a_shell() -> None:
    upload, curl, aws = (
        shlex.split(line) for line in object_lines("http://127.0.0.1:9000", ACCESS)
    )
    assert [word for word in upload if word not in {"-T", "README.md"}] == curl
    assert "AWS_SECRET_ACCESS_KEY=a/secret+with=signs" in aws
    assert aws[-1] == "s3://development/README.md"
    assert "ZKEXAMPLE:a/secret+with=signs" in curl
    assert curl[-1] == "http://127.0.0.1:9000/development/README.md"


def test_without_a_key_no_line_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert "aws" not in said(capsys, {"cache": None})


def test_without_the_cache_the_banner_does_not_mention_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "brain" not in said(capsys, {}, ZFEATURES="none")
