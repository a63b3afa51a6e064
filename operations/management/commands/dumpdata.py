"""``manage.py dumpdata``: refused, with the command to use instead."""

from typing import Any, NoReturn

from django.core.management.base import CommandError
from django.core.management.commands import dumpdata


class Command(dumpdata.Command):
    """Takes Django's options."""

    def handle(self, *args: Any, **options: Any) -> NoReturn:
        """Raise CommandError: a dump would hold neither tenants' databases nor objects."""
        raise CommandError(
            "dumpdata is not offered here: it would leave out the tenants' databases and objects. "
            "Use `manage.py backup`, or `manage.py exportorganization` for one organization."
        )
