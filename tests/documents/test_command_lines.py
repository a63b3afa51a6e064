"""Every command of ours in the documentation is one that its parser accepts."""

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Final

import click
import pytest
from django.core.management import CommandError, get_commands, load_command_class

from operations import documents
from tests.commands import facts
from tests.documents.blocks import ROOT, pages, shell_blocks
from zonal.cli.commands import top

# What stands for a value that the reader has.
VALUES: Final = {"$ORG_ID": "12", "$NODE_ID": "01a2048c-8dcc-7491-a7b0-994dba59c6e5"}
ENDS: Final = frozenset({"|", "||", "&&", ";", ">", ">>", "<", "&"})
# `zonal-manage` is manage.py with the settings of a machine: docs/running.md.
CALL: Final = re.compile(
    r"(?:^|python )(?P<program>manage\.py|zonal(?:-manage)?) (?P<arguments>.*)$"
)
INLINE: Final = re.compile(r"`(?P<program>manage\.py|zonal) (?P<arguments>[^`]+)`")
REFUSALS: Final = (SystemExit, KeyError, CommandError, click.ClickException)
# In the middle of a sentence.
PLACEHOLDERS: Final = {("manage.py", "NAME")}


def printed() -> Iterator[tuple[str, str, list[str]]]:
    """Yield page, program and arguments of each call in a block for a terminal."""
    for page in pages():
        for block in shell_blocks(page):
            for line in block.text.replace("\\\n", " ").splitlines():
                found = CALL.search(line)
                if found:
                    program = found["program"].replace("zonal-manage", "manage.py")
                    yield page, program, words_of(found["arguments"])


def words_of(text: str) -> list[str]:
    """Return a call's words, as a shell reads them, up to its end."""
    for name, value in VALUES.items():
        text = text.replace(name, value)
    reading = shlex.shlex(text, posix=True, punctuation_chars=True)
    reading.whitespace_split = True
    words: list[str] = []
    for word in reading:
        if word in ENDS:
            break
        words.append(word)
    return words


def mentioned() -> Iterator[tuple[str, str, list[str]]]:
    """Yield page, program and words of each call in the text."""
    for page in pages():
        for found in INLINE.finditer((ROOT / page).read_text()):
            yield page, found["program"], found["arguments"].split()


def manage_parser(name: str) -> ArgumentParser:
    """Return the parser of a command of Django's."""
    return load_command_class(get_commands()[name], name).create_parser("manage.py", name)


def parse(program: str, words: list[str]) -> None:
    """Raise one of REFUSALS for a call that its program would refuse."""
    if program == "zonal":
        command: click.Command = top
        while isinstance(command, click.Group):
            command, words = command.commands[words[0]], words[1:]
        command.make_context("zonal", list(words))
    else:
        manage_parser(words[0]).parse_args(words[1:])


def flags(parser: ArgumentParser) -> set[str]:
    return {flag for action in parser._actions for flag in action.option_strings}


def test_every_printed_call_is_parsed() -> None:
    refused = []
    calls = list(printed())
    for page, program, words in calls:
        try:
            parse(program, words)
        except REFUSALS as exc:
            refused.append((page, program, words, str(exc)))
    assert refused == []
    assert {program for _, program, _ in calls} == {"manage.py", "zonal"}
    assert len(calls) > 30


def test_every_call_in_a_sentence_names_a_command_and_its_options() -> None:
    known: dict[str, dict[tuple[str, ...], set[str]]] = {
        "manage.py": {(name,): flags(manage_parser(name)) for name in get_commands()},
        "zonal": {
            tuple(path.split()[1:]): {flag for each in command.params for flag in each.opts}
            for path, command in documents.subcommands(top)
        },
    }
    unknown = []
    count = 0
    for page, program, words in mentioned():
        if (program, words[0]) in PLACEHOLDERS:
            continue
        count += 1
        path = max(
            (each for each in known[program] if tuple(words[: len(each)]) == each),
            key=len,
            default=None,
        )
        wanted = {word.partition("=")[0] for word in words if word.startswith("--")}
        if path is None or wanted - known[program][path]:
            unknown.append((page, program, words))
    assert unknown == []
    assert count > 40


@pytest.mark.parametrize("line", ["manage.py backup --lisst", "zonal keys make x", "zonal sql -z"])
def test_a_call_that_nothing_accepts_is_found(line: str) -> None:
    program, *words = shlex.split(line)
    with pytest.raises(REFUSALS):
        parse(program, words)


@pytest.mark.django_db
def test_what_is_printed_and_can_be_tried_without_a_change_is_tried() -> None:
    tried = []
    for _, program, words in printed():
        if program == "manage.py" and words == ["settle"]:
            tried.append(facts(*words, "--dry-run")["dry_run"])
    assert tried == [True]
