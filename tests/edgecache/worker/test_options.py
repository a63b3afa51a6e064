"""The command line: an error message names the wrong option."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgecache.worker import options
from edgecache.worker.options import parse, size
from tests.edgecache.worker.brain import NODE, SECRET


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """Return valid options."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    return {
        "--brain": "https://brain.example.com:8083/",
        "--node-id": str(NODE),
        "--secret-file": str(secret),
        "--dir": str(tmp_path / "store"),
        "--capacity": "10GiB",
        "--region": "eu-central",
    }


def line(given: dict[str, str]) -> list[str]:
    """Return a command line."""
    return [word for pair in given.items() for word in pair]


def test_valid_options_are_read(given: dict[str, str]) -> None:
    found = parse(line(given | {"--listen": "[::1]:9200"}))
    assert found.brain == "https://brain.example.com:8083"
    assert (found.node_id, found.secret) == (NODE, SECRET)
    assert found.capacity_bytes == 10 << 30
    assert (found.host, found.port) == ("::1", 9200)
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096", 4096),
        ("1k", 1000),
        ("1KiB", 1024),
        ("1.5 GiB", 3 << 29),
        ("2TB", 2 * 10**12),
        ("10gib", 10 << 30),
        ("7MB", 7_000_000),
    ],
)
def test_sizes_may_have_a_unit(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--brain", "brain.example.com", "not a URL"),
        ("--brain", "ftp://brain", "not a URL"),
        ("--brain", "https://user:pass@brain", "not a URL"),
        ("--brain", "https://brain:99999", "not a URL"),
        ("--brain", "https://brain/path", "not a URL"),
        ("--node-id", "7", "not a UUID"),
        ("--secret-file", "/nonexistent/file", "No such file"),
        ("--capacity", "lots", "not a size"),
        ("--capacity", "-5", "--capacity"),
        ("--capacity", "1iB", "not a size"),
        ("--capacity", "4KiB", "at least 1MiB"),
        ("--region", "EU Central", "not a region"),
        ("--listen", "9100", "HOST:PORT"),
        ("--listen", "127.0.0.1:0", "HOST:PORT"),
        ("--listen", "127.0.0.1:70000", "HOST:PORT"),
        ("--endpoint", "127.0.0.1:9100", "not a URL"),
        ("--tls-cert", "/nonexistent/file", "no file"),
        ("--scrub-per-hour", "x", "whole number"),
        ("--max-connections", "0", "at least 1"),
        ("--drain", "nan", "number of seconds"),
        ("--client-timeout", "0", "at least 0.5"),
        ("--log-level", "loud", "--log-level"),
    ],
)
def test_a_wrong_value_is_refused_with_its_option(
    given: dict[str, str], capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(line(given | {option: value}))
    error = capsys.readouterr().err
    assert stopped.value.code == 2
    assert option in error
    assert said in error


@pytest.mark.parametrize(
    "missing", ["--brain", "--node-id", "--secret-file", "--dir", "--capacity", "--region"]
)
def test_a_missing_option_is_reported_with_its_name(
    given: dict[str, str], capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    del given[missing]
    with pytest.raises(SystemExit):
        parse(line(given))
    assert missing in capsys.readouterr().err


def test_a_secret_file_readable_by_others_is_refused(
    given: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(given["--secret-file"]).chmod(0o644)
    with pytest.raises(SystemExit):
        parse(line(given))
    assert "chmod 600" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"short", b"with blanks in between it", b"\xff" * 40])
def test_a_file_without_a_secret_is_refused_and_not_printed(
    given: dict[str, str], capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    Path(given["--secret-file"]).write_bytes(content)
    with pytest.raises(SystemExit):
        parse(line(given))
    assert "blanks" not in capsys.readouterr().err


@pytest.mark.parametrize("setting", ["ZLOG_FORMAT", "ZLOG_LEVEL"])
def test_a_wrong_environment_variable_is_refused_with_its_name(
    given: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
) -> None:
    monkeypatch.setenv(setting, "loud")
    with pytest.raises(SystemExit):
        parse(line(given))
    assert setting in capsys.readouterr().err


def test_a_certificate_needs_its_key(
    given: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(line(given | {"--tls-cert": given["--secret-file"]}))
    assert "--tls-key" in capsys.readouterr().err


def test_help_lists_the_options_and_an_example() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "edgecache.worker", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "10GiB" in printed
    assert "example:" in printed
    assert all(
        row in printed for row in ("--brain", "--secret-file", "--scrub-per-hour", "--linger")
    )


def test_a_folder_that_cannot_be_created_is_reported(given: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    arguments = line(given | {"--dir": str(tmp_path / "file" / "store")})
    ended = subprocess.run(
        [sys.executable, "-m", "edgecache.worker", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert ended.returncode == 1
    assert "store_unusable" in ended.stderr
    assert options.SECRET.pattern not in ended.stderr
