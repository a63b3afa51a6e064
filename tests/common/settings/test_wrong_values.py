"""A sentence about a wrong setting names the setting, and never shows its value."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.test import override_settings

from common.settings.env import SettingError
from common.settings.table import rows
from edgecache.worker import options
from operations.conf_modules import CONF_MODULES
from tests.settings_file import read_settings

MARKER = "hunter2hunter2"
NAMED = re.compile("zonal: [A-Z0-9_]+ ")
ROWS = {
    row.variable: row
    for conf in CONF_MODULES
    for table in conf.TABLES
    for row in rows(table).values()
}
# Values that belong to other settings, and slips in a value of the right kind.
WRONG = (
    MARKER,
    f"{MARKER},{MARKER}",
    f"AGE-SECRET-KEY-1{MARKER}",
    f"postgres://zonal:{MARKER}@db/zonal",
    f"postgres://zonal:1/{MARKER}@db/zonal",
    f"postgres://zonal:a@{MARKER}@db:port/zonal",
    f"postgres://zonal:{MARKER}@db/zonal?{MARKER}=1",
    f"postgres://[{MARKER}/zonal",
    f"https://u:{MARKER}@app.example.com/{MARKER}?{MARKER}#{MARKER}",
    f"https://u:{MARKER}\uff03@app.example.com",
    f"https://[{MARKER}",
    f"smtp://u:12/{MARKER}@mail.example.com",
    f"smtp://u:{MARKER}@mail.example.com:{MARKER}",
    f"anymail:{MARKER}?{MARKER}={MARKER}",
    f"s3://{MARKER}@b/{MARKER}?x",
    f"file://{MARKER}/{MARKER}",
    f"{MARKER}@2026-13-01",
    f"{MARKER}={MARKER}:{MARKER}",
    f"{'k' * 32},{MARKER}",
)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Yield the environment of a process, whose settings are read again."""
    with monkeypatch.context() as patched:
        yield patched


def _started(variable: str, value: str, environment: pytest.MonkeyPatch) -> list[str]:
    """Return what a process says that starts with a value; [] if it says nothing."""
    environment.setenv(variable, value)
    try:
        found = read_settings()
    except SettingError as error:
        said = str(error)
    else:
        return _checked(found)
    assert NAMED.match(said), said
    return [said]


def _checked(found: dict[str, Any]) -> list[str]:
    changed = {name: value for name, value in found.items() if name.isupper() and name in USED}
    with override_settings(**changed):
        messages = checks.run_checks(
            tags=[checks.Tags.security, "settings"], include_deployment_checks=True
        )
    return [f"{message.msg} {message.hint} {message.obj}" for message in messages]


OF_ANY_TEXT = {"text", "list", "secret", "secrets", "URL"}
USED = (
    "ACCOUNTS",
    "ALLOWED_HOSTS",
    "BACKUP",
    "BRAIN",
    "CACHE",
    "EMAIL_BACKEND",
    "IS_PRODUCTION",
    "MAIL_OPTIONS",
    "OAUTH",
    "PUBLIC_URL",
    "SECRETS",
    "SECRET_KEY",
    "SECRET_KEYS",
    "SMS_BACKEND",
    "SMS_OPTIONS",
    "SQL",
    "TWOFACTOR",
)


@pytest.mark.parametrize("variable", [name for row in ROWS.values() for name in row.names])
def test_no_process_shows_a_wrong_value(
    variable: str, environment: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kinds = {row.kind for row in ROWS.values() if variable in row.names}
    # The others refuse any of these values in one sentence.
    for value in WRONG if kinds & OF_ANY_TEXT else WRONG[:1]:
        said = [*_started(variable, value, environment), *capfd.readouterr()]
        assert not [text for text in said if MARKER in text], said


ARGUMENTS = {
    "--brain": "https://brain.example.com:8083",
    "--node-id": "0198c0de-0000-7000-8000-000000000001",
    "--dir": "/srv/node",
    "--capacity": "1GiB",
    "--region": "eu",
}


@pytest.mark.parametrize(
    "option",
    [
        words[0]
        for action in options.parser()._actions
        if (words := action.option_strings) and action.nargs != 0
    ],
)
def test_a_cache_worker_shows_no_wrong_value(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 40)
    secret.chmod(0o600)
    right = {**ARGUMENTS, "--secret-file": str(secret)}
    for value in WRONG:
        words = [word for pair in (right | {option: value}).items() for word in pair]
        with pytest.raises(SystemExit):
            options.parse([*words, "--unknown", MARKER, MARKER])
        said = capsys.readouterr().err
        assert MARKER not in said
        assert option in said or "--unknown" in said
