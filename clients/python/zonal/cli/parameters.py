"""Commands and parameters of click's, with what all commands of ours have."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from zonal.cli.configuration import credentials_of
from zonal.cli.context import Context

F = TypeVar("F", bound=Callable[..., Any])


class Argument(click.Argument):
    """An argument that the help explains: click for Python 3.9 has no help of one."""

    def __init__(self, param_decls: Sequence[str], *, about: str, **attributes: Any) -> None:
        """Take what click's arguments take, and the help's text."""
        super().__init__(param_decls, **attributes)
        self.help = about

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return name and text."""
        return self.human_readable_name, self.help or ""


class Exclusive(click.Option):
    """An option of which a command takes at most one."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Refuse a second one."""
        options = [each for each in ctx.command.params if isinstance(each, Exclusive)]
        given = [each.opts[-1] for each in options if each.name in opts]
        if len(given) > 1 and not ctx.resilient_parsing:
            raise click.UsageError(f"{' and '.join(given)} exclude each other.", ctx)
        return super().handle_parse_result(ctx, opts, args)


class Command(click.Command):
    """A command with --url and --json, of which its function gets a Context before the rest."""

    def __init__(
        self,
        name: str | None,
        *,
        params: list[click.Parameter] | None = None,
        **attributes: Any,
    ) -> None:
        """Take what click's commands take."""
        shared = [
            click.Option(
                ["--url"],
                envvar="ZONAL_URL",
                help="of the platform, such as https://zonal.example.com",
            ),
            click.Option(["--json", "is_json"], is_flag=True, help="write JSON"),
        ]
        super().__init__(name, params=[*shared, *(params or [])], **attributes)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function."""
        values = dict(ctx.params)
        environ = dict(os.environ)
        context = Context(
            credentials=credentials_of(environ),
            environ=environ,
            url=values.pop("url"),
            is_json=values.pop("is_json"),
        )
        return ctx.invoke(self.callback, context, **values) if self.callback else None


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the commands as they are defined."""
        return list(self.commands)


def argument(name: str, *, help: str, **attributes: Any) -> Callable[[F], F]:  # noqa: A002
    """Add an argument to a command."""
    return click.argument(name, cls=Argument, about=help, **attributes)


# The functions ask `asking.confirm`, which says what is lost.
sure = click.option("--yes", is_flag=True, help="do not ask")
