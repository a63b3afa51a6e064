"""`zonal login`, `logout` and `whoami`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

import zonal
from zonal.addresses import checked
from zonal.cli import asking, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.cli.parameters import Command, Exclusive, argument

if TYPE_CHECKING:
    from zonal.types import LoginAnswer

if TYPE_CHECKING:
    pass


@click.command("login", cls=Command)
@argument("email", required=False, help="to sign in with its password; else in a browser")
@click.option("--environment", metavar="NAME", help="the one used last without it")
@click.option("--method", help="second factor, such as totp, sms, email or backup_code")
@click.option("--token-stdin", cls=Exclusive, is_flag=True, help="read an API key and keep it")
@click.option("--password-stdin", cls=Exclusive, is_flag=True, help="read the password")
@click.option(
    "--no-browser",
    cls=Exclusive,
    is_flag=True,
    help="print the page's address and ask for its code",
)
def login(
    context: Context,
    email: str | None,
    environment: str | None,
    method: str | None,
    token_stdin: bool,
    password_stdin: bool,
    no_browser: bool,
) -> None:
    """Sign in and keep the session."""
    url = _url(context)
    if token_stdin:
        _keep_token(context, url)
        return
    store = zonal.MemoryStore()
    if email or password_stdin:
        email = email or asking.text("E-mail: ")
        password = asking.line_of_stdin("Password") if password_stdin else ""
        with zonal.Client(url, store=store) as client:
            answer = client.sign_in(
                email,
                password or asking.secret("Password: "),
                environment=environment,
                second_factor=asking.code,
                method=method,
                attempts=asking.ATTEMPTS,
            )
    else:
        # Its server takes longer to load than most commands to start.
        from zonal.cli import browser  # noqa: PLC0415

        answer = browser.sign_in(url, store, environment=environment, opens=not no_browser)
    _keep_session(context, url, store, answer)


def _keep_session(
    context: Context, url: str, store: zonal.MemoryStore, answer: LoginAnswer
) -> None:
    tokens = store.load()
    if tokens is None:
        raise zonal.ZonalError("The sign-in left no tokens.")
    with zonal.Client(url, store=store) as client:
        email = client.whoami().email or ""
    context.credentials.keep(
        url, {"email": email, "tokens": asdict(tokens), "environment": answer.environment.id}
    )
    terminal.say(f"Signed in to {url} as {email}, environment {answer.environment.name}.")


@click.command("logout", cls=Command)
def logout(context: Context) -> None:
    """End the session."""
    place = context.place
    kept = context.credentials.of(place.url)
    if "tokens" in kept:
        with context.client() as client:
            client.sign_out()
    else:
        context.credentials.forget(place.url)
    terminal.say(f"Signed out of {place.url}.")


@click.command("whoami", cls=Command)
def whoami(context: Context) -> None:
    """Show whose the token is."""
    with context.client() as client:
        found = client.whoami()
    context.show(
        found,
        [
            ("platform", context.place.url),
            ("user", found.email or "API key or development token"),
            ("organization", found.organization),
            ("environment", found.environment.name),
            ("roles", found.roles),
        ],
    )


def _keep_token(context: Context, url: str) -> None:
    token = asking.line_of_stdin("Token")
    with zonal.Client(url, token=token) as client:
        found = client.whoami()
    context.credentials.keep(url, {"token": token})
    terminal.say(
        f"Token kept for {url}: {found.organization}, environment {found.environment.name}."
    )


def _url(context: Context) -> str:
    chosen = context.url or context.credentials.current
    if not chosen:
        chosen = asking.text("URL of the platform: ")
    try:
        return checked(chosen.rstrip("/"), allow_http=False)
    except ValueError as exc:
        raise UsageError(str(exc)) from exc
