"""Whether this code and a database belong together: by Django's record of migrations."""

from pathlib import Path
from typing import Final

import structlog
from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from common.pending_migrations import compare
from common.version import TOO_OLD, VERSION

log = structlog.get_logger(__name__)

NEWER: Final = (
    "The database was migrated by a newer release than this one, Zonal {version}, which does not "
    "know {names}. It runs beside the next release; to go back further see docs/upgrade.md."
)


def refuse_too_old(alias: str = DEFAULT_DB_ALIAS) -> None:
    """Raise CommandError for a database that this release cannot upgrade."""
    unknown, is_complete = _compare(alias)
    if unknown and not is_complete:
        raise CommandError(TOO_OLD)


def newer_sentence(alias: str = DEFAULT_DB_ALIAS) -> str:
    """Return what to say of a database that a newer release has migrated; "" for others."""
    unknown, is_complete = _compare(alias)
    if not unknown or not is_complete:
        return ""
    return NEWER.format(version=VERSION, names=", ".join(unknown))


def check_start() -> None:
    """Log that the database is newer than this process.

    Raises CommandError if it is too old, DatabaseError if it does not answer.
    """
    refuse_too_old()
    sentence = newer_sentence()
    if sentence:
        log.warning("database_newer", message=sentence)


def _compare(alias: str) -> tuple[list[str], bool]:
    """Return our recorded migrations that are unknown, and whether all known ones are recorded.

    A newer release has added some; a database of a time before has others instead.
    """
    recorder = MigrationRecorder(connections[alias])
    ours = {config.label for config in apps.get_app_configs() if _is_ours(config.path)}
    applied = {key for key in recorder.applied_migrations() if key[0] in ours}
    loader = MigrationLoader(None, ignore_no_migrations=True)
    known = {
        key: set(one.replaces) for key, one in loader.disk_migrations.items() if key[0] in ours
    }
    unknown, is_complete = compare(applied, known)
    return sorted(".".join(key) for key in unknown), is_complete


def _is_ours(path: str) -> bool:
    folder = Path(path).resolve()
    return folder.is_relative_to(settings.BASE_DIR) and "site-packages" not in folder.parts
