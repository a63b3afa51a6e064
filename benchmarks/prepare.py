"""An organization to measure with, in the throw-away control database."""

import os

import django


def prepare() -> dict[str, str]:
    """Migrate, sign somebody in; give the token and the session's id."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - needs django.setup()

    from accounts.tokens import pair_for  # noqa: PLC0415 - needs django.setup()
    from tests import cast  # noqa: PLC0415 - needs django.setup()

    call_command("migrate", verbosity=0, interactive=False)
    user = cast.member(cast.organization("Bench"), "bench@example.com")
    session = cast.session_of(user)
    pair = pair_for(session, session.environment)
    return {"token": pair.access_token, "session": str(session.pk)}
