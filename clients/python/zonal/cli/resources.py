"""`zonal env`, `members`, `keys`, `cache` and `usage`."""

import sys
from argparse import Namespace
from dataclasses import asdict
from datetime import date
from typing import Optional

import zonal
from zonal.cli import asking, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.describe import size
from zonal.types import Created


def env_list(context: Context, _arguments: Namespace) -> None:
    """Show the organization's environments."""
    with context.client() as client:
        context.show_list(
            client.environments.list(),
            ["id", "name", "built_in", "created_at", "database_state", "database_error"],
        )


def env_create(context: Context, arguments: Namespace) -> None:
    """Make an environment."""
    with context.client() as client:
        made = client.environments.create(
            arguments.name, environment_id=arguments.id, copy_of=arguments.copy_of
        )
    context.done(f"Made {made.name}; its database: {made.database_state}.", made)


def env_delete(context: Context, arguments: Namespace) -> None:
    """Delete an environment."""
    asking.confirm(
        f"Delete environment {arguments.name} with all of its data?", is_sure=arguments.yes
    )
    with context.client() as client:
        asking.stepped_up(client, lambda: client.environments.delete(arguments.name))
    context.done(f"Deleted {arguments.name}.")


def env_rename(context: Context, arguments: Namespace) -> None:
    """Change an environment's name."""
    with context.client() as client:
        changed = client.environments.rename(arguments.environment, arguments.name)
    context.done(f"{changed.id} is named {changed.name} now.", changed)


def env_use(context: Context, arguments: Namespace) -> None:
    """Go on in another environment."""
    if context.place.token or "token" in context.credentials.of(context.place.url):
        raise UsageError("A token belongs to one environment: make one for the other.")
    with context.client() as client:
        client.switch(arguments.name)
        found = client.whoami()
    context.done(f"Commands use environment {found.environment.name} now.", found)


def members_list(context: Context, arguments: Namespace) -> None:
    """Show members."""
    with context.client() as client:
        context.show_list(
            client.members.list(email=arguments.email, role=arguments.role),
            ["email", "roles", "disabled", "last_login_at", "user_id"],
        )


def members_invite(context: Context, arguments: Namespace) -> None:
    """Invite somebody."""
    roles = arguments.role or ["reader"]
    with context.client() as client:
        invited = asking.stepped_up(client, lambda: client.members.invite(arguments.email, roles))
    context.done(f"Invited {invited.email} as {' and '.join(invited.roles)}.", invited)


def members_invitations(context: Context, _arguments: Namespace) -> None:
    """Show invitations."""
    with context.client() as client:
        context.show_list(
            client.members.invitations(), ["email", "roles", "state", "expires_at", "id"]
        )


def members_set(context: Context, arguments: Namespace) -> None:
    """Change a member's roles, or disable or enable the account."""
    if arguments.role is None and arguments.disabled is None:
        raise UsageError("Say what to change: --role, --disable or --enable.")
    with context.client() as client:
        user_id = _user_id(client, arguments.email)
        changed = asking.stepped_up(
            client,
            lambda: client.members.update(
                user_id, roles=arguments.role, disabled=arguments.disabled
            ),
        )
    ended = _ended(changed.created) if changed.created else ""
    context.done(f"Changed {changed.email}.{ended}", changed)


def members_remove(context: Context, arguments: Namespace) -> None:
    """Remove a member."""
    asking.confirm(f"Remove {arguments.email} from the organization?", is_sure=arguments.yes)
    with context.client() as client:
        user_id = _user_id(client, arguments.email)
        removed = asking.stepped_up(client, lambda: client.members.remove(user_id))
    context.done(f"Removed {arguments.email}.{_ended(removed.created)}", removed)


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


def keys_list(context: Context, arguments: Namespace) -> None:
    """Show the environment's API keys."""
    with context.client() as client:
        found = client.api_keys.list(state=arguments.state)
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


def keys_create(context: Context, arguments: Namespace) -> None:
    """Make an API key; its text is the only line of output."""
    with context.client() as client:
        made = asking.stepped_up(
            client,
            lambda: client.api_keys.create(
                arguments.name,
                role=arguments.role,
                scopes=arguments.scope,
                expires_in_days=arguments.days,
            ),
        )
    if context.is_json:
        terminal.write(terminal.json_text(asdict(made)))
        return
    terminal.write(made.key)
    terminal.say(f"Shown this once. It ends on {terminal.cell(terminal.moment(made.expires_at))}.")


def keys_revoke(context: Context, arguments: Namespace) -> None:
    """End an API key."""
    with context.client() as client:
        asking.stepped_up(client, lambda: client.api_keys.revoke(arguments.id))
    context.done(f"Revoked {arguments.id}.")


def usage(context: Context, arguments: Namespace) -> None:
    """Show what the organization used."""
    with context.client() as client:
        found = client.usage(since=_day(arguments.since), until=_day(arguments.until))
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


def _day(text: Optional[str]) -> Optional[date]:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as exc:
        raise UsageError(f"{text!r} is no day such as 2026-11-23.") from exc
