"""``manage.py issuetoken``: issue tokens of a member, for scripts and support."""

from argparse import ArgumentParser
from typing import Any, cast

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts.management import user_arguments
from accounts.signin import signin
from accounts.signin.signin import SignInAttempt, SignInMethod
from common.commands import CommandRefused, CommandResult, OpsCommand
from common.principals import PlatformRequest


class Command(OpsCommand):
    """Open a session without a password."""

    help = (
        "Open a session of a member without the password, and print its access token; with --json, "
        "the whole response of a login. The member sees the session, and it is in the audit trail. "
        "If a second factor is required, the exit status is 4 and the login's status has an "
        "mfa_token."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("email", help="Address the member signs in with.")
        parser.add_argument(
            "--environment", default="", help="Its id or name; the last used one by default."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Open a session through ``signin.finish``, like every sign-in method."""
        user = user_arguments.user(options["email"])
        if not user.is_active:
            raise CommandRefused("user_disabled", f"{user.email} is disabled.")
        environment = signin.environment_for(user, options["environment"])
        attempt = SignInAttempt(
            user, environment, method=SignInMethod.OPERATOR, amr=["cli"], now=timezone.now()
        )
        with transaction.atomic():
            done = signin.finish(_request(), attempt)
        answer = done.answer
        shown = answer.get("access_token") or f"{answer['status']}: {answer.get('mfa_token', '')}"
        unfinished = "" if "access_token" in answer else "No session yet: a second factor is due."
        return CommandResult(answer, shown, unfinished)


def _request() -> PlatformRequest:
    """Return a request that represents a shell on this machine."""
    request = HttpRequest()
    request.META |= {"REMOTE_ADDR": "127.0.0.1", "HTTP_USER_AGENT": "manage.py issuetoken"}
    return cast(PlatformRequest, request)
