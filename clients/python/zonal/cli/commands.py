"""All commands. No option takes a secret: process lists show arguments to everyone."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

import zonal
from zonal.cli import cache, files, imports, resources, session, sql
from zonal.cli.context import Context
from zonal.cli.parameters import Group, argument
from zonal.cli.terminal import write

# What a shell's script sets to ask for completions.
COMPLETE = "_ZONAL_COMPLETE"
ENDING = """Exit status: 0 done, 1 refused by the platform, 2 called wrongly, 3 no answer,
4 not signed in, 5 done but the answer cannot be shown. ZONAL_URL and ZONAL_TOKEN (an API key)
outrank what `zonal login` keeps."""


@click.group(
    "zonal",
    cls=Group,
    epilog=ENDING,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(zonal.__version__, message="zonal %(version)s")
def top() -> None:
    """Work with a Zonal platform."""


for command in (
    session.login,
    session.logout,
    session.whoami,
    sql.sql,
    imports.run,
    resources.env,
    cache.cache,
    resources.keys,
    resources.members,
    resources.usage,
):
    top.add_command(command)
for command in (files.ls, files.put, files.get, files.rm, resources.usage):
    cache.cache.add_command(command)


@top.command("completion")
@argument("shell", type=click.Choice(["bash", "zsh", "fish"]), help="the shell it is for")
def completion(_context: Context, shell: str) -> None:
    """Print a script that completes commands."""
    kind = get_completion_class(shell)
    if kind:
        write(kind(top, {}, "zonal", COMPLETE).source())
