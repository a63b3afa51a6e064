"""Arguments about users that the commands of administrators share: addresses, passwords."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts import passwords
from accounts.errors import EmailTaken
from accounts.models import User
from accounts.reclaim import address_release
from accounts.signin import credentials, signup
from common.commands import CommandRefused
from common.emails import is_address
from environments.models import Organization


def user(email: str) -> User:
    """Return the user with an address. Raises CommandRefused if there is none."""
    found = credentials.find(email)
    if found is None:
        raise CommandRefused("user_not_found", f"{email!r} has no account.")
    return found


def free_address(email: str, *, home: Organization | None = None) -> str:
    """Return an address in its stored form.

    home: the organization of the account to create. Raises CommandRefused for an invalid address,
    for one that an account has verified, and for that of a member of home or of staff.
    """
    if not is_address(email):
        raise CommandRefused("email_invalid", f"{email!r} is not an e-mail address.")
    found = credentials.find(email)
    if found is not None and not address_release.is_free_for(found, home):
        raise _taken(email)
    return signup.canonical(email)


@contextmanager
def taking_address(email: str) -> Iterator[None]:
    """Take the address from an account that never verified it, and run the block in a transaction.

    Raises CommandRefused where the block violates the unique index of addresses, and if the address
    was verified in the meantime.
    """
    try:
        with transaction.atomic():
            if email:
                address_release.take(email, now=timezone.now())
            yield
    except (EmailTaken, IntegrityError) as exc:
        raise _taken(email) from exc


def _taken(email: str) -> CommandRefused:
    return CommandRefused("email_taken", f"{email} has an account already.")


def ask_password(*context: str) -> str:
    """Ask for a new password; if standard input is not a terminal, read it from there.

    context: words that the password must not consist of. Returns its hash. Raises CommandRefused,
    InvalidRequest.
    """
    password = _read()
    passwords.validate(password, context=(*context, settings.SERVICE_NAME))
    return passwords.hash_password(password)


def _read() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass.getpass("Password: ")
    if password != getpass.getpass("Again: "):
        raise CommandRefused("passwords_differ", "The two are not the same.")
    return password
