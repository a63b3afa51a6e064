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
    *("sql:read", "sql:write", "schema:write", "objects:read", "objects:write"),
    *("buckets:read", "buckets:write", "nodes:read", "environments:read"),
)
ENDING = """Exit status: 0 done, 1 refused by the platform, 2 called wrongly, 3 no answer,
4 not signed in. ZONAL_URL and ZONAL_TOKEN (an API key) outrank what `zonal login` keeps."""


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
    spent.add_argument("--since", metavar="DAY", help="such as 2026-11-01; a month ago without it")
    spent.add_argument("--until", metavar="DAY")
    shell = _add(commands, "completion", "print a script that completes commands", None)
    shell.add_argument("shell", choices=("bash", "zsh", "fish"))
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
    asked.add_argument("--read-only", action="store_true")


def _import(commands: Sub) -> None:
    imported = _add(commands, "import", "put the rows of a CSV file into a table", imports.run)
    imported.add_argument("table", help="as in SQL: items, public.items")
    imported.add_argument("file", help="CSV in UTF-8, packed if it ends in .gz; - for stdin")
    imported.add_argument("--columns", metavar="NAME,NAME", help="of the file, in its order")
    imported.add_argument(
        "--header",
        choices=("match", "skip", "none"),
        default="match",
        help="the first line names the columns, is skipped, or is a row",
    )
    imported.add_argument("--delimiter", choices=(",", ";", "|", "tab"), default=",")


def _environments(commands: Sub) -> None:
    group = _group(commands, "env", "environments")
    _add(group, "list", "show them", resources.env_list)
    made = _add(group, "create", "make one", resources.env_create)
    made.add_argument("name")
    made.add_argument("--id", help="the name without it")
    made.add_argument("--copy-of", metavar="NAME", help="with a copy of another one's data")
    _add(group, "use", "go on in another one", resources.env_use).add_argument("name")
    _sure(_add(group, "delete", "delete one with its data", resources.env_delete), "name")


def _cache(commands: Sub) -> None:
    group = _group(commands, "cache", "buckets, purges, keys of the object API")
    _add(group, "status", "show its state", cache.status)
    buckets = _group(group, "buckets", "buckets")
    _add(buckets, "list", "show them", cache.buckets_list)
    made = _add(buckets, "create", "make one", cache.buckets_create)
    made.add_argument("name")
    made.add_argument("--public", action="store_true", help="anyone may read its objects")
    made.add_argument("--origin", metavar="NAME", help="where its objects come from")
    _add(buckets, "delete", "delete an empty one", cache.buckets_delete).add_argument("name")
    objects = _add(group, "objects", "show the objects of a bucket", cache.objects)
    objects.add_argument("bucket")
    objects.add_argument("--prefix", default="")
    shown = _add(group, "ls", "show objects", files.ls)
    shown.add_argument("place", metavar="BUCKET[/PREFIX]")
    put = _add(group, "put", "upload a file", files.put)
    put.add_argument("file")
    put.add_argument("place", metavar="BUCKET/KEY", help="with / at its end: the file's name there")
    put.add_argument("--type", help="Content-Type; guessed from the file's name without it")
    got = _add(group, "get", "download an object", files.get)
    got.add_argument("place", metavar="BUCKET/KEY")
    got.add_argument("file", nargs="?", help="the key's last part without it; - for stdout")
    got.add_argument("--force", action="store_true", help="replace a file that is there")
    gone = _add(group, "rm", "delete objects, at their origin too", files.rm)
    gone.add_argument("place", nargs="+", metavar="BUCKET/KEY")
    gone.add_argument("--yes", action="store_true", help="do not ask")
    purge = _add(group, "purge", "remove cached copies", cache.purge)
    purge.add_argument("--key", action="append", metavar="BUCKET/KEY", help="may be repeated")
    purge.add_argument("--prefix", metavar="BUCKET/PREFIX")
    purge.add_argument("--all", action="store_true")
    purge.add_argument("--preview", action="store_true", help="only count")
    purge.add_argument("--yes", action="store_true", help="do not ask")
    keys = _group(group, "keys", "access keys for S3 clients")
    _add(keys, "list", "show them", cache.keys_list)
    key = _add(keys, "create", "make one", cache.keys_create)
    key.add_argument("label", nargs="?", default="")
    key.add_argument("--access", choices=("read", "write"), default="write")
    _add(keys, "delete", "delete one", cache.keys_delete).add_argument("id")
    used = _add(group, "usage", "show what the organization used", resources.usage)
    used.add_argument("--since", metavar="DAY")
    used.add_argument("--until", metavar="DAY")


def _keys(commands: Sub) -> None:
    group = _group(commands, "keys", "API keys")
    listed = _add(group, "list", "show them", resources.keys_list)
    listed.add_argument("--state", choices=("active", "expired", "revoked"))
    made = _add(group, "create", "make one and print it", resources.keys_create)
    made.add_argument("name")
    made.add_argument("--role", choices=ROLES, required=True)
    made.add_argument("--scope", action="append", choices=SCOPES, help="may be repeated")
    made.add_argument("--days", type=int, metavar="N", help="until it ends; 90 without it")
    _add(group, "revoke", "end one", resources.keys_revoke).add_argument("id")


def _members(commands: Sub) -> None:
    group = _group(commands, "members", "members of the organization")
    listed = _add(group, "list", "show them", resources.members_list)
    listed.add_argument("--email", metavar="PART")
    listed.add_argument("--role", choices=ROLES)
    invited = _add(group, "invite", "mail an invitation", resources.members_invite)
    invited.add_argument("email")
    invited.add_argument("--role", choices=ROLES, default="reader")
    _add(group, "invitations", "show invitations", resources.members_invitations)
    changed = _add(group, "set", "change one", resources.members_set)
    changed.add_argument("email")
    changed.add_argument("--role", choices=ROLES)
    able = changed.add_mutually_exclusive_group()
    able.add_argument("--disable", dest="disabled", action="store_true", default=None)
    able.add_argument("--enable", dest="disabled", action="store_false", default=None)
    _sure(_add(group, "remove", "remove one", resources.members_remove), "email")


def _group(commands: Sub, name: str, text: str) -> Sub:
    made = commands.add_parser(name, help=text, allow_abbrev=False)
    return made.add_subparsers(metavar="COMMAND", required=True)


def _add(commands: Sub, name: str, text: str, run: Optional[Command]) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, allow_abbrev=False)
    made.add_argument("--url", help="of the platform, such as https://zonal.example.com")
    made.add_argument("--json", action="store_true", help="write JSON")
    made.set_defaults(run=run)
    return made


def _sure(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(what)
    command.add_argument("--yes", action="store_true", help="do not ask")
