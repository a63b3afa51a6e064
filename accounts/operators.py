"""What operators' commands share: whom they mean, and where they get a password from."""

import getpass
import sys

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from accounts import credentials, passwords, signup
from accounts.models import User
from environments.models import Organization
from platform_site.lib.commands import Refused

# How members are told who did it.
NAME = "an operator of the platform"


def organization(organization_id: int) -> Organization:
    """Give an organization.

    Raises Refused.
    """
    found = Organization.objects.filter(pk=organization_id).first()
    if found is None:
        message = f"There is no organization {organization_id}."
        raise Refused("organization_not_found", message)
    return found


def user(email: str) -> User:
    """Give the user of an address.

    Raises Refused.
    """
    found = credentials.find(email)
    if found is None:
        raise Refused("user_not_found", f"{email} has no account.")
    return found


def free_address(email: str) -> str:
    """Give an address as it is kept.

    Raises Refused for what is none, and for one that has an account.
    """
    try:
        validate_email(email)
    except ValidationError as exc:
        raise Refused("email_invalid", f"{email} is no e-mail address.") from exc
    if credentials.find(email) is not None:
        raise Refused("email_taken", f"{email} has an account already.")
    return signup.canonical(email)


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
