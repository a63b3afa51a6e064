"""The command's arguments. No option takes a secret: process lists show arguments to everyone."""

import argparse
from collections.abc import Callable
from typing import Any, Optional

from zonal import __version__
from zonal.cli import cache, completion, files, imports, resources, session, sql
from zonal.cli.context import Context

Command = Callable[[Context, argparse.Namespace], None]
Sub = Any  # argparse's own class for sub-commands is private
ROLES = ("admin", "operator", "reader")
SCOPES = (
    "sql:read",
    "sql:write",
    "schema:write",
    "objects:read",
    "objects:write",
    "buckets:read",
    "buckets:write",
    "nodes:read",
    "environments:read",
)
ENDING = """Exit status: 0 done, 1 refused by the platform, 2 called wrongly, 3 no answer,
4 not signed in, 5 done but the answer cannot be shown. ZONAL_URL and ZONAL_TOKEN (an API key)
outrank what `zonal login` keeps."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    top = argparse.ArgumentParser(
        prog="zonal",
        description="Work with a Zonal platform.",
        epilog=ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"zonal {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    _session(commands)
    _sql(commands)
    _import(commands)
    _environments(commands)
    _cache(commands)
    _keys(commands)
    _members(commands)
    spent = _add(commands, "usage", "show what the organization used", resources.usage)
    _days(spent)
    shell = _add(commands, "completion", "print a script that completes commands", None)
    shell.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell it is for")
    shell.set_defaults(run=lambda _, given: completion.write(top, given.shell))
    return top


def _session(commands: Sub) -> None:
    login = _add(commands, "login", "sign in and keep the session", session.login)
    login.add_argument("email", nargs="?", help="to sign in with its password; else in a browser")
    login.add_argument("--environment", metavar="NAME", help="the one used last without it")
    login.add_argument("--method", help="second factor, such as totp, sms, email or backup_code")
    how = login.add_mutually_exclusive_group()
    how.add_argument("--token-stdin", action="store_true", help="read an API key and keep it")
    how.add_argument("--password-stdin", action="store_true", help="read the password")
    how.add_argument(
        "--no-browser", action="store_true", help="print the page's address and ask for its code"
    )
    _add(commands, "logout", "end the session", session.logout)
    _add(commands, "whoami", "show whose the token is", session.whoami)


def _sql(commands: Sub) -> None:
    asked = _add(commands, "sql", "run SQL, or open a prompt", sql.sql)
    asked.add_argument("-c", "--command", action="append", metavar="SQL", help="may be repeated")
    asked.add_argument("-f", "--file", action="append", metavar="FILE", help="- for stdin")
    asked.add_argument("-p", "--param", action="append", metavar="VALUE", help="of $1, $2, …")
    asked.add_argument("--csv", action="store_true", help="rows of any number as CSV")
    asked.add_argument("--read-only", action="store_true", help="refuse to change anything")


def _import(commands: Sub) -> None:
    imported = _add(commands, "import", "put the rows of a CSV file into a table", imports.run)
    imported.add_argument("table", help="as in SQL: items, public.items")
    imported.add_argument("file", help="CSV in UTF-8, packed if it ends in .gz; - for stdin")
    imported.add_argument("--columns", metavar="NAME,NAME", help="of the file, in its order")
    imported.add_argument("--skip", metavar="NAME,NAME", help="of the file, not imported")
    imported.add_argument(
        "--header",
        choices=("match", "skip", "none"),
        default="match",
        help="the first line names the columns, is skipped, or is a row",
    )
    imported.add_argument(
        "--delimiter",
        choices=(",", ";", "|", "tab"),
        default=",",
        metavar="CHARACTER",
        help="between the columns: , (without it), ;, | or tab",
    )


def _environments(commands: Sub) -> None:
    group = _group(commands, "env", "environments")
    _add(group, "list", "show environments", resources.env_list)
    made = _add(group, "create", "make an environment", resources.env_create)
    made.add_argument("name", help="of the new one")
    made.add_argument("--id", help="the name without it")
    made.add_argument("--copy-of", metavar="NAME", help="with a copy of another one's data")
    _add(group, "use", "go on in another environment", resources.env_use).add_argument(
        "name", help="its name or id"
    )
    gone = _add(group, "delete", "delete an environment with its data", resources.env_delete)
    _sure(gone, "name", "its id")
    renamed = _add(group, "rename", "change an environment's name", resources.env_rename)
    renamed.add_argument("environment", help="its id, which stays")
    renamed.add_argument("name", help="its new name")


def _cache(commands: Sub) -> None:
    group = _group(commands, "cache", "buckets, purges, keys of the object API")
    _add(group, "status", "show the cache's state", cache.status)
    buckets = _group(group, "buckets", "buckets")
    _add(buckets, "list", "show buckets", cache.buckets_list)
    made = _add(buckets, "create", "make a bucket", cache.buckets_create)
    made.add_argument("name", help="unique in the environment")
    made.add_argument("--public", action="store_true", help="anyone may read its objects")
    made.add_argument("--origin", metavar="NAME", help="where its objects come from")
    gone = _add(buckets, "delete", "delete an empty bucket", cache.buckets_delete)
    gone.add_argument("name", help="its name")
    _objects(group)
    purge = _add(group, "purge", "remove cached copies", cache.purge)
    purge.add_argument("--key", action="append", metavar="BUCKET/KEY", help="may be repeated")
    purge.add_argument("--prefix", metavar="BUCKET/PREFIX", help="of every key that begins so")
    purge.add_argument("--all", action="store_true", help="of the whole environment")
    purge.add_argument("--preview", action="store_true", help="only count")
    purge.add_argument("--yes", action="store_true", help="do not ask")
    keys = _group(group, "keys", "access keys for S3 clients")
    _add(keys, "list", "show access keys for S3 clients", cache.keys_list)
    key = _add(keys, "create", "make an access key", cache.keys_create)
    key.add_argument("label", nargs="?", default="", help="a note for people")
    key.add_argument(
        "--access", choices=("read", "write"), default="write", help="%(default)s without it"
    )
    _add(keys, "delete", "delete an access key", cache.keys_delete).add_argument(
        "id", help="as `list` shows it"
    )
    used = _add(group, "usage", "show what the organization used", resources.usage)
    _days(used)


def _objects(group: Sub) -> None:
    objects = _add(group, "objects", "show the objects of a bucket", cache.objects)
    objects.add_argument("bucket", help="its name")
    objects.add_argument("--prefix", default="", help="only keys that begin so")
    shown = _add(group, "ls", "show objects", files.ls)
    shown.add_argument("place", metavar="BUCKET[/PREFIX]", help="only keys that begin so")
    put = _add(group, "put", "upload a file", files.put)
    put.add_argument("file", help="to upload")
    put.add_argument("place", metavar="BUCKET/KEY", help="with / at its end: the file's name there")
    put.add_argument("--type", help="Content-Type; guessed from the file's name without it")
    got = _add(group, "get", "download an object", files.get)
    got.add_argument("place", metavar="BUCKET/KEY", help="the object")
    got.add_argument("file", nargs="?", help="the key's last part without it; - for stdout")
    got.add_argument("--force", action="store_true", help="replace a file that is there")
    gone = _add(group, "rm", "delete objects, at their origin too", files.rm)
    gone.add_argument("place", nargs="+", metavar="BUCKET/KEY", help="the objects")
    gone.add_argument("--yes", action="store_true", help="do not ask")


def _keys(commands: Sub) -> None:
    group = _group(commands, "keys", "API keys")
    listed = _add(group, "list", "show API keys", resources.keys_list)
    listed.add_argument("--state", choices=("active", "expired", "revoked"), help="only those")
    made = _add(group, "create", "make an API key and print it", resources.keys_create)
    made.add_argument("name", help="a note for people")
    made.add_argument("--role", choices=ROLES, required=True, help="the most that it may do")
    made.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        metavar="SCOPE",
        help=f"may be repeated; all without it: {', '.join(SCOPES)}",
    )
    made.add_argument("--days", type=int, metavar="N", help="until it ends; 90 without it")
    _add(group, "revoke", "end an API key", resources.keys_revoke).add_argument(
        "id", help="as `list` shows it"
    )


def _members(commands: Sub) -> None:
    group = _group(commands, "members", "members of the organization")
    listed = _add(group, "list", "show members", resources.members_list)
    listed.add_argument("--email", metavar="PART", help="only addresses that hold it")
    listed.add_argument("--role", choices=ROLES, help="only those with it")
    invited = _add(group, "invite", "mail an invitation", resources.members_invite)
    invited.add_argument("email", help="where the invitation goes")
    invited.add_argument(
        "--role", action="append", choices=ROLES, help="may be repeated; reader without it"
    )
    _add(group, "invitations", "show invitations", resources.members_invitations)
    changed = _add(group, "set", "change a member", resources.members_set)
    changed.add_argument("email", help="the member's address")
    changed.add_argument(
        "--role",
        action="append",
        choices=ROLES,
        help="in place of the present ones; may be repeated",
    )
    able = changed.add_mutually_exclusive_group()
    able.add_argument(
        "--disable",
        dest="disabled",
        action="store_true",
        default=None,
        help="end the sessions and let nobody sign in",
    )
    able.add_argument(
        "--enable", dest="disabled", action="store_false", default=None, help="take that back"
    )
    gone = _add(group, "remove", "remove a member", resources.members_remove)
    _sure(gone, "email", "the member's address")


def _group(commands: Sub, name: str, text: str) -> Sub:
    made = commands.add_parser(name, help=text, allow_abbrev=False)
    return made.add_subparsers(metavar="COMMAND", required=True)


def _add(commands: Sub, name: str, text: str, run: Optional[Command]) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, allow_abbrev=False)
    made.add_argument("--url", help="of the platform, such as https://zonal.example.com")
    made.add_argument("--json", action="store_true", help="write JSON")
    made.set_defaults(run=run)
    return made


def _days(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--since", metavar="DAY", help="such as 2026-11-01; a month ago without it"
    )
    command.add_argument("--until", metavar="DAY", help="today without it")


def _sure(command: argparse.ArgumentParser, what: str, text: str) -> None:
    command.add_argument(what, help=text)
    command.add_argument("--yes", action="store_true", help="do not ask")
