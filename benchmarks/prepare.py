"""Organizations for benchmarks, in the throw-away control database."""

import os
from typing import Any

import django


def prepare() -> None:
    """Load the platform and migrate."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - needs django.setup()

    call_command("migrate", verbosity=0, interactive=False)


def signed_in() -> dict[str, str]:
    """Sign a user in; return the token and the session's id."""
    return _sign_in("Bench")


def tokens(count: int) -> list[str]:
    """Return the access tokens of new organizations."""
    return [_sign_in(f"Bench {number}")["token"] for number in range(count)]


def organization_tokens(environments: tuple[str, ...] = ("live", "sandbox")) -> list[str]:
    """Return an access token for each environment of one new organization."""
    from tests import cast  # noqa: PLC0415 - needs django.setup()

    home = cast.organization("Bench organization")
    user = cast.member(home, f"bench{home.pk}@example.com")
    return [_token_of(cast.session_of(user, environment)) for environment in environments]


def development_token() -> tuple[str, str]:
    """Return the development token of a new organization, and the organization's id."""
    from accounts.tokens import development  # noqa: PLC0415 - needs django.setup()
    from tests import cast  # noqa: PLC0415 - needs django.setup()

    home = cast.organization("Bench development")
    return development.token_for(home.pk), str(home.pk)


def _sign_in(name: str) -> dict[str, str]:
    from tests import cast  # noqa: PLC0415 - needs django.setup()

    home = cast.organization(name)
    session = cast.session_of(cast.member(home, f"bench{home.pk}@example.com"))
    return {"token": _token_of(session), "session": str(session.pk)}


def _token_of(session: Any) -> str:
    from accounts.tokens.session_tokens import pair_for  # noqa: PLC0415 - needs django.setup()

    return pair_for(session, session.environment).access_token
