"""What operators' commands share: whom they mean, and where they get a password from."""

import getpass
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.db import IntegrityError

from accounts import passwords
from accounts.models import User
from accounts.signin import credentials, signup
from environments.models import Organization
from platform_site.lib.commands import Refused
from platform_site.lib.emails import is_address

# Names the operator in mails to members.
NAME: Final = "an operator of the platform"
# As in the admin.
REASON_CHARS: Final = 300


def reason(text: str) -> str:
    """Return a reason as the audit trail keeps it.

    Raises ArgumentTypeError for one that is empty, too long, or not printable.
    """
    stripped = text.strip()
    if not 0 < len(stripped) <= REASON_CHARS or not stripped.isprintable():
        raise ArgumentTypeError(f"a reason has 1 to {REASON_CHARS} printable characters")
    return stripped


def organization(organization_id: int) -> Organization:
    """Return an organization. Raises Refused."""
    found = Organization.objects.filter(pk=organization_id).first()
    if found is None:
        message = f"There is no organization {organization_id}."
        raise Refused("organization_not_found", message)
    return found


def user(email: str) -> User:
    """Return the user of an address. Raises Refused."""
    found = credentials.find(email)
    if found is None:
        raise Refused("user_not_found", f"{email!r} has no account.")
    return found


def free_address(email: str) -> str:
    """Return an address as it is kept.

    Raises Refused for what is none, and for one that has an account.
    """
    if not is_address(email):
        raise Refused("email_invalid", f"{email!r} is no e-mail address.")
    if credentials.find(email) is not None:
        raise _taken(email)
    return signup.canonical(email)


@contextmanager
def refusing_taken(email: str) -> Iterator[None]:
    """Turn into Refused what only the index knows: who signed up meanwhile, and odd capitals."""
    try:
        yield
    except IntegrityError as exc:
        raise _taken(email) from exc


def _taken(email: str) -> Refused:
    return Refused("email_taken", f"{email} has an account already.")


def asked_password(*context: str) -> str:
    """Ask for a new password, or read it from standard input where that is no terminal.

    context: words it must not be made of. Gives its hash. Raises Refused, InvalidRequest.
    """
    password = _read()
    passwords.validate(password, context=(*context, settings.SERVICE_NAME))
    return passwords.hash_password(password)


def _read() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("Again: "):
        raise Refused("passwords_differ", "The two are not the same.")
    return password
