"""`zonal env`, `members`, `keys` and `usage`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Literal, get_args

import click

import zonal
from zonal.cli import asking, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.describe import size
from zonal.cli.parameters import Command, Exclusive, Group, argument, sure

if TYPE_CHECKING:
    from zonal.types import Created

Role = Literal["admin", "operator", "reader"]
State = Literal["active", "expired", "revoked"]
ROLES = get_args(Role)
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


@click.group("env", cls=Group)
def env() -> None:
    """Environments."""


@click.group("keys", cls=Group)
def keys() -> None:
    """API keys."""


@click.group("members", cls=Group)
def members() -> None:
    """Members of the organization."""


@env.command("list")
def env_list(context: Context) -> None:
    """Show environments."""
    with context.client() as client:
        context.show_list(
            client.environments.list(),
            ["id", "name", "built_in", "created_at", "database_state", "database_error"],
        )


@env.command("create")
@argument("name", help="of the new one")
@click.option("--id", "environment_id", metavar="ID", help="the name without it")
@click.option("--copy-of", metavar="NAME", help="with a copy of another one's data")
def env_create(
    context: Context, name: str, environment_id: str | None, copy_of: str | None
) -> None:
    """Make an environment."""
    with context.client() as client:
        made = client.environments.create(name, environment_id=environment_id, copy_of=copy_of)
    context.done(f"Made {made.name}; its database: {made.database_state}.", made)


@env.command("delete")
@argument("name", help="its id")
@sure
def env_delete(context: Context, name: str, yes: bool) -> None:
    """Delete an environment with its data."""
    asking.confirm(f"Delete environment {name} with all of its data?", is_sure=yes)
    with context.client() as client:
        asking.stepped_up(client, lambda: client.environments.delete(name))
    context.done(f"Deleted {name}.")


@env.command("rename")
@argument("environment", help="its id, which stays")
@argument("name", help="its new name")
def env_rename(context: Context, environment: str, name: str) -> None:
    """Change an environment's name."""
    with context.client() as client:
        changed = client.environments.rename(environment, name)
    context.done(f"{changed.id} is named {changed.name} now.", changed)


@env.command("use")
@argument("name", help="its name or id")
def env_use(context: Context, name: str) -> None:
    """Go on in another environment."""
    if context.place.token or "token" in context.credentials.of(context.place.url):
        raise UsageError("A token belongs to one environment: make one for the other.")
    with context.client(switches_to=name) as client:
        client.switch(name)
        found = client.whoami()
    context.done(f"Commands use environment {found.environment.name} now.", found)


@members.command("list")
@click.option("--email", metavar="PART", help="only addresses that hold it")
@click.option("--role", type=click.Choice(ROLES), help="only those with it")
def members_list(context: Context, email: str | None, role: Role | None) -> None:
    """Show members."""
    with context.client() as client:
        context.show_list(
            client.members.list(email=email, role=role),
            ["email", "roles", "disabled", "last_login_at", "user_id"],
        )


@members.command("invite")
@argument("email", help="where the invitation goes")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    help="may be repeated; reader without it",
)
def members_invite(context: Context, email: str, roles: tuple[Role, ...]) -> None:
    """Mail an invitation."""
    invited_as: list[Role] = list(roles) or ["reader"]
    with context.client() as client:
        invited = asking.stepped_up(client, lambda: client.members.invite(email, invited_as))
    context.done(f"Invited {invited.email} as {' and '.join(invited.roles)}.", invited)


@members.command("invitations")
def members_invitations(context: Context) -> None:
    """Show invitations."""
    with context.client() as client:
        context.show_list(
            client.members.invitations(), ["email", "roles", "state", "expires_at", "id"]
        )


@members.command("set")
@argument("email", help="the member's address")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(ROLES),
    help="in place of the present ones; may be repeated",
)
@click.option(
    "--disable", cls=Exclusive, is_flag=True, help="end the sessions and let nobody sign in"
)
@click.option("--enable", cls=Exclusive, is_flag=True, help="take that back")
def members_set(
    context: Context, email: str, roles: tuple[Role, ...], disable: bool, enable: bool
) -> None:
    """Change a member."""
    if not (roles or disable or enable):
        raise UsageError("Say what to change: --role, --disable or --enable.")
    with context.client() as client:
        user_id = _user_id(client, email)
        changed = asking.stepped_up(
            client,
            lambda: client.members.update(
                user_id,
                roles=list(roles) or None,
                disabled=disable if disable or enable else None,
            ),
        )
    ended = _ended(changed.created) if changed.created else ""
    context.done(f"Changed {changed.email}.{ended}", changed)


@members.command("remove")
@argument("email", help="the member's address")
@sure
def members_remove(context: Context, email: str, yes: bool) -> None:
    """Remove a member."""
    asking.confirm(f"Remove {email} from the organization?", is_sure=yes)
    with context.client() as client:
        user_id = _user_id(client, email)
        removed = asking.stepped_up(client, lambda: client.members.remove(user_id))
    context.done(f"Removed {email}.{_ended(removed.created)}", removed)


def _ended(created: Created) -> str:
    """Return lines about what has ended with the member's admin role, and what stays."""
    lines = [
        *(("Ended", each) for each in created.ends),
        *(("Stays", each) for each in created.stays),
    ]
    said = [f"{word}: {each.kind.replace('_', ' ')} {each.name or each.id}" for word, each in lines]
    if not created.is_complete:
        said.append("The cache did not answer: S3 access keys end when it does.")
    return "".join(f"\n{line}" for line in said)


@keys.command("list")
@click.option("--state", type=click.Choice(get_args(State)), help="only those")
def keys_list(context: Context, state: State | None) -> None:
    """Show API keys."""
    with context.client() as client:
        found = client.api_keys.list(state=state)
        if context.is_json:
            context.show_list(found, [])
            return
        terminal.table(
            ["id", "name", "role", "scopes", "state", "expires", "last used"],
            [
                (
                    each.id,
                    each.name,
                    each.role,
                    each.scopes,
                    each.state,
                    terminal.moment(each.expires_at),
                    terminal.moment(each.last_used_at),
                )
                for each in found
            ],
            out=sys.stdout,
        )


@keys.command("create")
@argument("name", help="a note for people")
@click.option("--role", type=click.Choice(ROLES), required=True, help="the most that it may do")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    metavar="SCOPE",
    help=f"may be repeated; all without it: {', '.join(SCOPES)}",
)
@click.option("--days", type=int, metavar="N", help="until it ends; 90 without it")
def keys_create(
    context: Context, name: str, role: Role, scopes: tuple[str, ...], days: int | None
) -> None:
    """Make an API key and print it."""
    with context.client() as client:
        made = asking.stepped_up(
            client,
            lambda: client.api_keys.create(
                name, role=role, scopes=list(scopes) or None, expires_in_days=days
            ),
        )
    if context.is_json:
        terminal.write(terminal.json_text(asdict(made)))
        return
    terminal.write(made.key)
    terminal.say(f"Shown this once. It ends on {terminal.cell(terminal.moment(made.expires_at))}.")


@keys.command("revoke")
@argument("key_id", metavar="id", help="as `list` shows it")
def keys_revoke(context: Context, key_id: str) -> None:
    """End an API key."""
    with context.client() as client:
        asking.stepped_up(client, lambda: client.api_keys.revoke(key_id))
    context.done(f"Revoked {key_id}.")


@click.command("usage", cls=Command)
@click.option("--since", metavar="DAY", help="such as 2026-11-01; a month ago without it")
@click.option("--until", metavar="DAY", help="today without it")
def usage(context: Context, since: str | None, until: str | None) -> None:
    """Show what the organization used."""
    with context.client() as client:
        found = client.usage(since=_day(since), until=_day(until))
    if context.is_json:
        terminal.write(terminal.json_text(asdict(found)))
        return
    terminal.table(
        ["day", "environment", "statements", "seconds", "answers"],
        [
            (
                row.day,
                row.environment,
                row.statements,
                row.milliseconds / 1000,
                size(row.egress_bytes),
            )
            for row in found.sql
        ],
        out=sys.stdout,
    )
    terminal.table(
        ["day", "environment", "bucket", "hits", "misses", "sent"],
        [
            (row.day, row.environment, row.bucket, row.hits, row.misses, size(row.egress_bytes))
            for row in found.cache
        ],
        out=sys.stdout,
    )
    terminal.say(f"Charged: {found.charged_ucr / 1_000_000:.6f} credits.")


def _user_id(client: zonal.Client, email: str) -> str:
    """Return the member with an address; the API's filter finds parts of addresses as well."""
    for member in client.members.list(email=email):
        if member.email is not None and member.email.lower() == email.lower():
            return member.user_id
    raise UsageError(f"The organization has no member {email}.")


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as exc:
        raise UsageError(f"{text!r} is no day such as 2026-11-23.") from exc
