"""``manage.py createstaff``: somebody who may enter the admin."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.db import transaction

from accounts import audit, credentials, passwords, signup
from accounts.models import User
from environments import lifecycle
from platform_site.lib.errors import InvalidRequest


class Command(BaseCommand):
    """Make a member of the platform's staff, or make an existing user one."""

    help = (
        "Make a member of the platform's staff, who may enter the admin. A new user gets an "
        "organization; the password is asked for, or read from standard input when that is no "
        "terminal. An existing user keeps password and organization."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the address."""
        parser.add_argument("email", help="Address the person signs in with.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make or promote the user."""
        email = str(options["email"])
        user = credentials.find(email)
        with transaction.atomic():
            if user is None:
                user = self._create(email)
            user.is_staff = True
            user.save(update_fields=["is_staff"])
            audit.add(
                None,
                "cli:staff:create",
                organization_id=user.organization_id,
                actor_id=user.pk,
                actor=user.email,
            )
        self.stdout.write(f"{user.email} may enter the admin.")

    def _create(self, email: str) -> User:
        try:
            validate_email(email)
        except ValidationError as exc:
            raise CommandError(f"{email} is no e-mail address.") from exc
        password = self._password()
        try:
            passwords.validate(password, context=(email, settings.SERVICE_NAME))
        except InvalidRequest as exc:
            raise CommandError(exc.fields[0].message) from exc
        organization = lifecycle.create_organization("Staff")
        encoded = passwords.hash_password(password)
        return signup.add_user(organization, signup.canonical(email), encoded, roles=["admin"])

    def _password(self) -> str:
        if not sys.stdin.isatty():
            return sys.stdin.readline().rstrip("\n")
        password = getpass.getpass("Password: ")
        if password != getpass.getpass("Again: "):
            raise CommandError("The two are not the same.")
        return password
