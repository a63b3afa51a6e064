"""An operator's command."""

import json
from io import StringIO

from django.core.management import CommandError, call_command
from django.http import JsonResponse

from accounts.models import User
from accounts.signin.signin import SignInMethod
from common.commands import UNFINISHED
from environments.models import Organization
from tests.cast import Answer, member
from tests.sign_in_methods.driver import EMAIL, Driver


class Operator(Driver):
    sign_in_method = SignInMethod.OPERATOR

    def prepare(self, home: Organization) -> User:
        return member(home, EMAIL)

    def come_in(self) -> Answer:
        return said(EMAIL)

    def fail(self) -> Answer:
        return said("nobody@example.com")


def said(email: str) -> Answer:
    """Run the command; return what it prints, as if it were an answer."""
    out = StringIO()
    try:
        call_command("issuetoken", email, "--json", stdout=out, stderr=StringIO())
        status = 200
    except CommandError as exc:
        # 4 is a sign-in that waits for its second factor: an answer like any other.
        status = 200 if exc.returncode == UNFINISHED else 401
    body = json.loads(out.getvalue())
    raw = JsonResponse(body, status=status)
    return Answer(status, body.get("error", body), raw.headers, raw)


DRIVER = Operator()
