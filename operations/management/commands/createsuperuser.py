"""``manage.py createsuperuser``: refused, with the command to use instead."""

from typing import Any, NoReturn

from django.contrib.auth.management.commands import createsuperuser
from django.core.management.base import CommandError


class Command(createsuperuser.Command):
    """Takes Django's options."""

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        """Raise CommandError: users belong to an organization, and staff is made by createstaff."""
        raise CommandError("There are no superusers here. Use `manage.py createstaff EMAIL`.")
