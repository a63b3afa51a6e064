"""Django's way to the brain's tables when they have a database of their own."""

from typing import Any, Final

from django.db.models import Model

LABEL: Final = "brain"


class BrainRouter:
    """Keeps only the brain's models on the alias ``brain``."""

    def db_for_read(self, model: type[Model], **_hints: Any) -> str | None:
        """Name the alias for the brain's models."""
        return LABEL if model._meta.app_label == LABEL else None

    def db_for_write(self, model: type[Model], **_hints: Any) -> str | None:
        """Name the alias for the brain's models."""
        return LABEL if model._meta.app_label == LABEL else None

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool:
        """True for the brain's migrations on its alias, and for all others elsewhere."""
        return (app_label == LABEL) == (db == LABEL)
