"""Each command of ours explains itself, speaks JSON, and shows what it would change."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Final

import pytest
from django.core.management import (
    CommandError,
    call_command,
    get_commands,
    load_command_class,
)
from django.core.management.base import BaseCommand

from common.commands import OpsCommand
from tests.packages import PACKAGES

# They become another process, whose output is its log.
PROCESSES: Final = {"runbrain", "up"}
# Part of `make run`, which parses it; made in the fastest way.
OWN_OUTPUT: Final = {"bootstrap"}
READS: Final = {
    "cachestatus",
    "checkisolation",
    "doctor",
    "listclusters",
    "verifyledger",
    "dumpenvironment",
    "exportaudit",
    "exportorganization",
    "exportstatement",
    "writedocs",
}
# What changes something and has no --dry-run, and why.
NO_DRY_RUN: Final = {
    "addcluster": "repeating it is harmless, and draincluster takes it back",
    "bootstrap": "development only, and repeating it is harmless",
    "cachenodes": "one decision about one node, which the other one takes back",
    "drainnode": "one decision about one node; without --remove it can be taken back",
    "issuetoken": "opening the session is all it does",
    "moveenvironment": "the data is the same afterwards, and the old database is kept",
    "provision": "makes what the next request would make",
    "pruneexpired": "the task worker does the same each hour",
    "quarantines": "only shows until --yes",
    "registerlocalnode": "repeating it is harmless",
    "restoreenvironment": "the present data is kept",
    "warmcache": "adds copies, which the cache evicts by itself",
}
# The first two are Django's and the queue's, with a check of ours; the others refuse, and name what
# to use instead.
OTHERS: Final = {"migrate", "procrastinate", "createsuperuser", "dumpdata"}
COMMANDS: Final = sorted(
    name
    for name, app in get_commands().items()
    if isinstance(app, str) and app.split(".")[0] in PACKAGES and name not in OTHERS
)


def loaded(name: str) -> BaseCommand:
    """Return a command."""
    return load_command_class(get_commands()[name], name)


def parser_of(name: str) -> ArgumentParser:
    """Return a command's parser."""
    return loaded(name).create_parser("manage.py", name)


def flags_of(name: str) -> set[str]:
    """Return the options a command knows."""
    return {flag for action in parser_of(name)._actions for flag in action.option_strings}


def test_all_are_found() -> None:
    assert len(COMMANDS) > 40
    assert set(COMMANDS) >= PROCESSES | OWN_OUTPUT | READS | set(NO_DRY_RUN)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_is_sentences(name: str) -> None:
    text = loaded(name).help
    assert len(text) > 30
    assert text.strip().endswith(".")
    assert [action.dest for action in parser_of(name)._actions if not action.help] == []


@pytest.mark.parametrize("name", sorted({*COMMANDS} - PROCESSES))
def test_it_prints_json(name: str) -> None:
    assert "--json" in flags_of(name)
    assert isinstance(loaded(name), OpsCommand) or name in OWN_OUTPUT


@pytest.mark.parametrize("name", sorted({*COMMANDS} - PROCESSES - READS))
def test_it_can_show_what_it_would_change(name: str) -> None:
    assert ("--dry-run" in flags_of(name)) != (name in NO_DRY_RUN)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words",
    [
        ("rotatekeys", "--retire", "9999-12-31"),
        ("exportstatement", "1", "9999-12"),
        ("setrate", "hit", "5", "--from", "9999-12-31T23:00-05:00"),
        ("addcluster", "twin", "--url-file", "URL"),
        # Of a file, and of a shell whose encoding is not UTF-8.
        ("createstaff", "a\0b@example.com"),
        ("createstaff", "a\udcff@example.com"),
        ("exportaudit", "--actor", "a\0b"),
        ("exportaudit", "--output", "a\0b"),
        ("warmcache", "1", "live", "bucket/a\0b"),
    ],
)
def test_what_cannot_be_read_or_kept_is_refused_in_a_sentence(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    url = tmp_path / "url"
    url.write_text("postgresql://root:secret@[::1/")
    with pytest.raises(CommandError) as caught:
        call_command(*(str(url) if word == "URL" else word for word in words))
    assert "secret" not in str(caught.value)


@pytest.mark.django_db
def test_a_limit_may_be_of_any_size() -> None:
    call_command("deliveries", "--limit", str(2**70))
