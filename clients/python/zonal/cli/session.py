"""`zonal login`, `logout` and `whoami`."""

from argparse import Namespace
from dataclasses import asdict

import zonal
from zonal.addresses import checked
from zonal.cli import asking, browser, terminal
from zonal.cli.configuration import UsageError
from zonal.cli.context import Context
from zonal.types import LoginAnswer


def login(context: Context, arguments: Namespace) -> None:
    """Sign in and keep the session, or keep a token; in a browser unless an e-mail is named."""
    url = _url(context)
    if arguments.token_stdin:
        _keep_token(context, url)
        return
    store = zonal.MemoryStore()
    if arguments.email or arguments.password_stdin:
        answer = _by_password(url, store, arguments)
    else:
        answer = browser.sign_in(
            url, store, environment=arguments.environment, opens=not arguments.no_browser
        )
    _keep_session(context, url, store, answer.environment.name)


def _by_password(url: str, store: zonal.MemoryStore, arguments: Namespace) -> LoginAnswer:
    email = arguments.email or asking.text("E-mail: ")
    password = asking.line_of_stdin("Password") if arguments.password_stdin else ""
    with zonal.Client(url, store=store) as client:
        return client.sign_in(
            email,
            password or asking.secret("Password: "),
            environment=arguments.environment,
            second_factor=asking.code,
            method=arguments.method,
            attempts=asking.ATTEMPTS,
        )


def _keep_session(context: Context, url: str, store: zonal.MemoryStore, environment: str) -> None:
    tokens = store.load()
    if tokens is None:
        raise zonal.ZonalError("The sign-in left no tokens.")
    with zonal.Client(url, store=store) as client:
        email = client.whoami().email or ""
    context.credentials.keep(url, {"email": email, "tokens": asdict(tokens)})
    terminal.say(f"Signed in to {url} as {email}, environment {environment}.")


def logout(context: Context, _arguments: Namespace) -> None:
    """End the session and forget it."""
    place = context.place
    kept = context.credentials.of(place.url)
    if "tokens" in kept:
        with context.client() as client:
            client.sign_out()
    else:
        context.credentials.forget(place.url)
    terminal.say(f"Signed out of {place.url}.")


def whoami(context: Context, _arguments: Namespace) -> None:
    """Show whose the token is, and where it is good for."""
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
