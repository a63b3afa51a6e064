"""The arguments of a command as Markdown, from its parser."""

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Final

# The arguments that Django adds to each command; the pages list them once.
COMMON: Final = frozenset(
    {
        "-h",
        "--version",
        "-v",
        "--settings",
        "--pythonpath",
        "--traceback",
        "--no-color",
        "--force-color",
        "--skip-checks",
    }
)
# Arguments of nearly all commands of the platform; the pages list them once, and in each synopsis.
USUAL: Final = frozenset({"--json", "--url"})
TABLE_HEAD: Final = "| argument | |\n|---|---|\n"


def synopsis(parser: argparse.ArgumentParser) -> str:
    """Return the synopsis of a command in one line, with optional arguments in brackets."""
    alternatives = [group for group in parser._mutually_exclusive_groups if _shown(group)]
    grouped = {id(action) for group in alternatives for action in group._group_actions}
    options = [each for each in _arguments(parser) if each.option_strings]
    words = [_word(each) for each in options if id(each) not in grouped]
    words += [
        ("({})" if group.required else "[{}]").format(" | ".join(map(_written, _shown(group))))
        for group in alternatives
    ]
    words += [
        _written(each)
        for each in _arguments(parser)
        if not each.option_strings and id(each) not in grouped
    ]
    return " ".join([parser.prog, *words])


def arguments_table(parser: argparse.ArgumentParser) -> str:
    """Return a table of a command's arguments, '' where there are none."""
    expanded: Callable[[argparse.Action], str] = parser._get_formatter()._expand_help
    rows = "".join(
        f"| {_names(action)} | {_cell(expanded(action))} |\n"
        for action in _arguments(parser)
        if not USUAL & {*action.option_strings}
    )
    return TABLE_HEAD + rows if rows else ""


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Yield every subcommand of a parser, with its help text."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        sentences = {each.dest: each.help or "" for each in action._choices_actions}
        for name, below in action.choices.items():
            if any(isinstance(each, argparse._SubParsersAction) for each in below._actions):
                yield from commands(below)
            else:
                yield below, sentences[name]


def _arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return a command's own arguments: positional ones first."""
    own = [action for action in parser._actions if not COMMON & {*action.option_strings}]
    return sorted(own, key=lambda action: bool(action.option_strings))


def _shown(group: argparse._MutuallyExclusiveGroup) -> list[argparse.Action]:
    return [each for each in group._group_actions if not COMMON & {*each.option_strings}]


def _word(action: argparse.Action) -> str:
    return _written(action) if action.required else f"[{_written(action)}]"


def _written(action: argparse.Action) -> str:
    """Return an argument as it is typed: ``--limit N``, ``[FILE …]``."""
    value = _value(action)
    if action.option_strings:
        return " ".join(filter(None, (action.option_strings[-1], value)))
    return value


def _value(action: argparse.Action) -> str:
    """Return the name of an argument's value and how many there may be, '' for a flag."""
    if action.nargs == 0:
        return ""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    name = action.metavar or choices or action.dest
    word = name if isinstance(name, str) else " ".join(name)
    if action.option_strings and not (action.metavar or choices):
        word = word.upper()
    forms = {"?": f"[{word}]", "*": f"[{word} …]", "+": f"{word} [{word} …]"}
    return forms.get(str(action.nargs), word)


def _names(action: argparse.Action) -> str:
    value = _value(action)
    names = action.option_strings or [value]
    last = f"{names[-1]} {value}" if action.option_strings and value else names[-1]
    return ", ".join(f"`{_escaped(name)}`" for name in [*names[:-1], last])


def _cell(text: str) -> str:
    return _escaped(re.sub(r"\s+", " ", text).strip())


def _escaped(text: str) -> str:
    """Return text for a cell of a table."""
    return text.replace("|", "\\|")
