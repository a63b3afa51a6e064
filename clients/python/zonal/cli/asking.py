"""Questions to the person at the terminal; secrets are read without an echo."""

from __future__ import annotations

import getpass
import sys
from typing import Callable, TypeVar

import zonal
from zonal.cli.configuration import UsageError
from zonal.cli.terminal import safe, say

T = TypeVar("T")
ATTEMPTS = 3


def line_of_stdin(what: str) -> str:
    """Return a secret from the standard input."""
    if sys.stdin.isatty():
        return secret(f"{what}: ")
    text = sys.stdin.readline().strip()
    if not text:
        raise UsageError(f"There is no {what.lower()} in the standard input.")
    return text


def text(prompt: str) -> str:
    """Ask for something that may be seen."""
    _require_terminal(prompt)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def secret(prompt: str) -> str:
    """Ask for a password or a code."""
    _require_terminal(prompt)
    return getpass.getpass(prompt)


def code(challenge: zonal.Challenge) -> str:
    """Ask for the code of a challenge."""
    if challenge.method == "webauthn":
        raise UsageError(
            "A passkey needs a browser: choose another method with --method, or use an API key."
        )
    where = f", sent to {safe(challenge.delivery_hint)}" if challenge.delivery_hint else ""
    return secret(f"Code ({challenge.method.replace('_', ' ')}{where}): ")


def confirm(question: str, *, is_sure: bool) -> None:
    """Ask before something is lost; raises UsageError unless the answer is yes."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Say so with --yes.")
    if text(f"{question} [y/N] ").lower() not in {"y", "yes"}:
        raise UsageError("Nothing was done.")


def stepped_up(client: zonal.Client, action: Callable[[], T]) -> T:
    """Do something that may take a recent proof of identity; ask for one if it does."""
    try:
        return action()
    except zonal.PermissionDeniedError as problem:
        if problem.code != "step_up_required" or not sys.stdin.isatty():
            raise
        say("This takes a recent proof that it is you.")
        if problem.body.get("proof") == "password":
            client.reauthenticate(secret("Password: "))
        else:
            client.step_up(code, attempts=ATTEMPTS)
    return action()


def _require_terminal(prompt: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(
            f"{prompt.strip(' :')} is asked for at a terminal; programs use an API key: "
            "`zonal login --token-stdin`, or ZONAL_TOKEN."
        )
