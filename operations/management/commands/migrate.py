"""``manage.py migrate``: Django's, for databases that this release can upgrade."""

from typing import Any

from django.core.management.commands import migrate

from operations import releases


class Command(migrate.Command):
    """The same options as Django's."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate. Raises CommandError for a database that is too old."""
        alias = options["database"]
        releases.refuse_too_old(alias)
        super().handle(*args, **options)
        sentence = releases.newer_sentence(alias)
        if sentence:
            self.stderr.write(sentence)
