"""Run operators' commands as a script does."""

import io
import json
from typing import Any

import pytest
from django.core.management import (
    CommandError,
    call_command,
    get_commands,
    load_command_class,
)


def run(name: str, *arguments: str) -> str:
    """Run a command; return its output."""
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def facts(name: str, *arguments: str) -> Any:
    """Run a command with --json; return its parsed output."""
    return json.loads(run(name, *arguments, "--json"))


def refused(name: str, *arguments: str) -> tuple[str, dict[str, Any]]:
    """Run a command that fails; return its sentence, and the error that --json prints."""
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command(name, *arguments, "--json", stdout=out, stderr=io.StringIO())
    assert caught.value.returncode == 1
    error: dict[str, Any] = json.loads(out.getvalue())["error"]
    assert error["message"] == str(caught.value)
    return str(caught.value), error


def misused(name: str, *arguments: str) -> int:
    """Call a command with wrong arguments; return its exit status."""
    command = load_command_class(get_commands()[name], name)
    with pytest.raises(SystemExit) as caught:
        command.run_from_argv(["manage.py", name, *arguments])
    return int(caught.value.code or 0)


def help_of(name: str) -> str:
    """Return what --help prints, in one line."""
    text = (
        load_command_class(get_commands()[name], name)
        .create_parser("manage.py", name)
        .format_help()
    )
    return " ".join(text.split())
