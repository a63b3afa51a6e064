"""Documents that are generated from the code: settings, errors, audit tags, permissions, commands.

A command's page comes from its parser, that of `zonal` from its commands.
"""

import argparse
import inspect
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from importlib import import_module
from textwrap import wrap
from typing import Any, Final

from django.conf import settings
from django.core.management import get_commands, load_command_class

from audit.tags import AuditTag
from billing import verify_statement
from common.commands import DRY_RUN_HELP
from common.errors import PlatformError, every_error
from common.permissions import ACTIONS, ALL, ROLES, TABLE, Action
from common.settings.table import SettingRow, rows
from edgecache.worker import options as worker_options
from operations.conf_modules import CONF_MODULES

SETTINGS_HEAD: Final = """# Settings

Every setting is an environment variable. A secret may also come from a file: `NAME_FILE` names it.
What is unset falls back to `$ZDATA_DIR/runtime.env`, which `make run` writes, then to
the default. A wrong value ends the process at start with a sentence that names the variable.
Written by `manage.py writedocs`; a test compares.

| variable | kind, default | meaning |
|---|---|---|
"""
ERRORS_HEAD: Final = """# Errors

Every refusal is `application/problem+json` (RFC 9457): `type`, `title`, `status`, `code`,
`request_id`, often `detail`, and `errors[]` (`field`, `code`, `message`) where fields are wrong.
`code` is stable; texts may change. 401 carries `WWW-Authenticate`, 429 and 503 `Retry-After`.
Written by `manage.py writedocs`; a test compares.
"""
AUDIT_HEAD: Final = """# Audit tags

Each event of the audit trail (`GET /v1/audit`) has a tag `source:subject:action`. The source is
`api` (a request), `admin` (staff in the admin), `cli` (an operator's command), `sync` (a provider
or DNS), `sql` (the SQL gateway) or `system` (the platform's own work). Tags are stable.

An event's `sentence` says who did what, to whom. `affected` is the person whom it affects, always
of the same organization, or an address that its admin typed. The filters compare texts in any case:

- `search`: words, each of them a part of the sentence, the actor, the tag or a value of the data,
  the beginning of the network address, or the request id
- `actor`, `affected`: a part of the address, or a user's id
- `tag`: a whole tag or its first parts, such as `api:session`
- `outcome`, `environment`, `request_id`: the whole value, as it is written
- `since`, `until`: from then on, and before then; an end that is not later is refused

Written by `manage.py writedocs`; a test compares.

"""
COMMANDS_HEAD: Final = """# Commands

What operators run on a machine of the platform, with its settings
([`zonal-manage`](running.md#the-code)). While `make run` is up, a second terminal's
`.venv/bin/python manage.py` finds its databases. `--json` prints one JSON object, errors
included; `--dry-run` checks and shows everything and keeps nothing. Django's own options
(`--verbosity`, `--traceback`, …) are in `manage.py NAME --help`.
Written by `manage.py writedocs`; a test compares. What users have is [`zonal`](cli.md).

| exit status | |
|---|---|
| 0 | done |
| 1 | refused, and nothing was changed; or what was checked is not right |
| 2 | called wrongly |
| 3 | the database, or another thing that the command needs, does not answer: try again |
| 4 | begun and not complete: the message says what is left, and what to do |

"""
CLI_HEAD: Final = """# The command zonal

What users run on their own machine: [clients](clients.md) says how to install it and shows it at
work. Options come after the command. `--url` names the platform, such as https://zonal.example.com;
without it `ZONAL_URL` does, or the last `zonal login`. `--json` writes JSON; all have both.
Written by `manage.py writedocs`; a test compares.

| exit status | |
|---|---|
| 0 | done |
| 1 | the platform refused; the message has its `code` and request id |
| 2 | called wrongly, or not confirmed |
| 3 | no answer, or a stream that was cut |
| 4 | not signed in |
| 5 | done, but the answer cannot be shown: do not repeat it |
| 130 | interrupted |

"""
PERMISSIONS_HEAD: Final = """# Permissions

What a role may do to a resource; all is to create, read, update and delete.
Data is `sql` (rows) and `objects`; `schema` is DDL; the rest is
configuration. Own profile, factors and sessions are everyone's, and every member reads the list of
environments, the policy, nodes' public fields and the cache's state.
`GET /v1/permissions/effective` answers with the caller's own. What an API key may do is in
[API keys](api-keys.md).
Written by `manage.py writedocs`; a test compares.

"""
ARGUMENTS_HEAD: Final = "| argument | |\n|---|---|\n"
# The arguments that Django adds to each command; the pages list them once.
DJANGO_ARGUMENTS: Final = frozenset(
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
# Django's and the queue's commands, with a check of ours before them, or refused.
EXTENDED: Final = frozenset({"createsuperuser", "dumpdata", "migrate", "procrastinate"})
# Arguments of nearly all commands of the platform; the pages list them once, and in each synopsis.
# A --dry-run that does something else has its own help.
SHARED_ARGUMENTS: Final = frozenset({"--json", "--url"})
SHARED_HELP: Final = frozenset({DRY_RUN_HELP})


def pages() -> dict[str, str]:
    """Return every generated page by its file name."""
    return {
        "settings.md": settings_page(),
        "errors.md": errors_page(),
        "audit.md": audit_page(),
        "commands.md": commands_page(),
        "cli.md": cli_page(),
        "permissions.md": permissions_page(),
    }


def settings_page() -> str:
    """Return docs/settings.md."""
    ordered = sorted(settings_rows(), key=lambda row: row.variable.lstrip("Z"))
    return SETTINGS_HEAD + "\n".join(map(_settings_line, ordered)) + "\n"


def settings_rows() -> list[SettingRow]:
    """Return every setting of every app."""
    return [
        row for module in CONF_MODULES for table in module.TABLES for row in rows(table).values()
    ]


def _settings_line(row: SettingRow) -> str:
    names = " or ".join(f"`{name}`" for name in row.names)
    default = f"{row.shown_default} {row.unit}".strip()
    return f"| {names} | {row.kind}, {default} | {row.sentence} |"


def errors_page() -> str:
    """Return docs/errors.md."""
    # A code may have several statuses, as `sql_error` does.
    kinds = {(kind.status, kind.code): kind for kind in every_error()}
    page = ERRORS_HEAD
    for status in sorted({status for status, _ in kinds}):
        page += f"\n## {status}\n\n"
        found = (kind for (other, _), kind in sorted(kinds.items()) if other == status)
        page += "".join(f"- `{kind.code}`: {_meaning(kind)}\n" for kind in found)
    return page


def _meaning(kind: type[PlatformError]) -> str:
    return _one_line((inspect.getdoc(kind) or "").replace("``", "`"))


def audit_page() -> str:
    """Return docs/audit.md."""
    tags = sorted((tag, tag.sentence) for app in AuditTag.__subclasses__() for tag in app)
    return AUDIT_HEAD + "".join(f"- `{tag}`: {sentence}\n" for tag, sentence in tags)


def permissions_page() -> str:
    """Return docs/permissions.md."""
    head = f"| resource | {' | '.join(ROLES)} |\n|---{'|---' * len(ROLES)}|\n"
    rows = (
        f"| `{resource}` | {' | '.join(_actions(by_role[role]) for role in ROLES)} |\n"
        for resource, by_role in TABLE.items()
    )
    return PERMISSIONS_HEAD + head + "".join(rows)


def _actions(allowed: frozenset[Action]) -> str:
    if allowed == ALL:
        return "all"
    return ", ".join(action for action in ACTIONS if action in allowed) or "–"


def commands_page() -> str:
    """Return docs/commands.md."""
    found = [
        load_command_class(app, name).create_parser("manage.py", name)
        for name, app in sorted(get_commands().items())
        if _is_own(app) and name not in EXTENDED
    ]
    own = "".join(_command(each.prog.split()[-1], each, each.description or "") for each in found)
    modules = (worker_options.parser(), verify_statement.parser())
    others = "".join(_command(each.prog, each, each.description or "") for each in modules)
    return (COMMANDS_HEAD + own + others).rstrip("\n") + "\n"


def _is_own(app: str) -> bool:
    """True for an app of the platform, False for one of Django or a library."""
    return (settings.BASE_DIR / app.partition(".")[0]).is_dir()


def cli_page() -> str:
    """Return docs/cli.md. The client is a separate project, which is not installed here."""
    folder = str(settings.BASE_DIR / "clients" / "python")
    if folder not in sys.path:
        sys.path.append(folder)
    top = import_module("zonal.cli.commands").top
    parts = (_client_command(path, command) for path, command in subcommands(top))
    return (CLI_HEAD + "".join(parts)).rstrip("\n") + "\n"


def subcommands(group: Any, path: str = "zonal") -> Iterator[tuple[str, Any]]:
    """Yield every command of a group of click's, with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from subcommands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _client_command(path: str, command: Any) -> str:
    """Return a section about a command of click's."""
    params = [each for each in command.params if not SHARED_ARGUMENTS & {*each.opts}]
    arguments = [each for each in params if each.param_type_name == "argument"]
    options = [each for each in params if each.param_type_name == "option"]
    exclusive = [each for each in options if type(each).__name__ == "Exclusive"]
    words = [
        _typed(each) if each.required else f"[{_typed(each)}]"
        for each in options
        if each not in exclusive
    ]
    if exclusive:
        words.append(f"[{' | '.join(map(_typed, exclusive))}]")
    words += map(_typed, arguments)
    rows = "".join(
        f"| {', '.join(f'`{_escaped(name)}`' for name in [*each.opts[:-1], _typed(each)])}"
        f" | {_cell(each.help)} |\n"
        for each in [*arguments, *options]
    )
    table = ARGUMENTS_HEAD + rows if rows else ""
    parts = (f"## {path}", command.help, f"```text\n{' '.join([path, *words])}\n```", table)
    return "\n\n".join(filter(None, (part.rstrip("\n") for part in parts))) + "\n\n"


def _typed(parameter: Any) -> str:
    """Return a parameter of click's as it is typed."""
    choices = getattr(parameter.type, "choices", ())
    value = parameter.metavar or ("{" + ",".join(choices) + "}" if choices else "")
    if parameter.param_type_name == "argument":
        value = value or parameter.name
        return value if parameter.required else f"[{value}]"
    if parameter.is_flag:
        return str(parameter.opts[-1])
    return f"{parameter.opts[-1]} {value or parameter.opts[-1].strip('-').upper()}"


def _command(title: str, parser: ArgumentParser, text: str) -> str:
    """Return a section about a command."""
    said = "\n".join(wrap(_one_line(text), 100, break_long_words=False, break_on_hyphens=False))
    parts = (
        f"## {title}",
        said,
        f"```text\n{synopsis(parser)}\n```",
        arguments_table(parser).rstrip("\n"),
    )
    return "\n\n".join(filter(None, parts)) + "\n\n"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


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
        if not SHARED_ARGUMENTS & {*action.option_strings} and action.help not in SHARED_HELP
    )
    return ARGUMENTS_HEAD + rows if rows else ""


def _arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return a command's own arguments: positional ones first."""
    own = [action for action in parser._actions if not DJANGO_ARGUMENTS & {*action.option_strings}]
    return sorted(own, key=lambda action: bool(action.option_strings))


def _shown(group: argparse._MutuallyExclusiveGroup) -> list[argparse.Action]:
    return [each for each in group._group_actions if not DJANGO_ARGUMENTS & {*each.option_strings}]


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
