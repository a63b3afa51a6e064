"""The start of a process: what production refuses, and the messages of a web server."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final, cast

import structlog
from django.conf import settings
from django.core import checks
from django.core.checks import Tags
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.signals import connection_created

from accounts.tokens import development
from common import control_database, key_fingerprints
from common.key_fingerprints import SENTENCE
from common.machine.reasons import reason
from common.pending_migrations import NOT_MIGRATED, pending_migrations
from common.version import VERSION
from operations import releases
from operations.doctor import keys

log = structlog.get_logger(__name__)

# Commands that use no key: what builds an image or configures nginx, and reports of what is wrong.
# The brain refuses by itself what it cannot run with.
KEYLESS: Final = frozenset(
    {
        "check",
        "collectstatic",
        "doctor",
        "help",
        "movestore",
        "runbrain",
        "version",
    }
)
# It makes up for a key that is lost.
WITH_OTHER_KEYS: Final = "rotatekeys"
RETRY_S: Final = 1.0


def log_start(process: str) -> None:
    """Write the first line of a process's log: which one it is, of which release."""
    log.info("process_starting", process=process, version=VERSION)


def check_release() -> None:
    """Raise SystemExit with a sentence for a database that is too old for this release.

    One that does not answer is compared on the first connection, which fails if it is too old.
    """
    try:
        releases.check_start()
    except CommandError as exc:
        raise SystemExit(f"zonal: {exc}") from None
    except DatabaseError:
        connection_created.connect(_compare_release)
    finally:
        _disconnect()


def refuse_command(arguments: Sequence[str]) -> None:
    """Refuse a management command in production as `refuse_unsafe` does, if it uses keys."""
    command = arguments[0] if arguments else "help"
    if command in KEYLESS or command.startswith("-") or {"-h", "--help"} & set(arguments):
        return
    # It fetches jobs on connections of its own, and fails those that it cannot run.
    waits = command == "procrastinate" and "worker" in arguments
    refuse_unsafe(with_other_keys=command == WITH_OTHER_KEYS, waits=waits)


def refuse_unsafe(*, with_other_keys: bool = False, waits: bool = False) -> None:
    """End a process of production whose settings are unsafe, or whose keys are not the database's.

    waits: for the database and its migrations, for as long as it takes. Otherwise keys are compared
    on the first connection to it, which fails where they differ.
    Raises SystemExit with a sentence for each setting.
    """
    for unknown in settings.UNKNOWN_SETTINGS:
        log.warning("setting_unknown", message=unknown.sentence())
    if not settings.IS_PRODUCTION:
        _refuse_other_keys_in_development()
        return
    found = checks.run_checks(tags=[Tags.security, "settings"], include_deployment_checks=True)
    wrong = [message for message in found if message.is_serious() and not message.is_silenced()]
    if wrong:
        raise SystemExit("\n".join(f"zonal: {message.msg} ({message.id})" for message in wrong))
    try:
        refused = _when_usable() if waits else _database_complaints(with_other_keys=with_other_keys)
    except DatabaseError as exc:
        log.warning("keys_not_compared", error=reason(exc))
        if with_other_keys:
            return
        connection_created.connect(_compare_keys)
        return
    finally:
        _disconnect()
    if refused:
        raise SystemExit("\n".join(f"zonal: {sentence}" for sentence in refused))


def _disconnect() -> None:
    """Close all connections to the control database: a server forks after this."""
    connection.close()
    cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS]).close_pool()  # type: ignore[attr-defined]  # PostgreSQL's


def _database_complaints(*, with_other_keys: bool = False) -> list[str]:
    """Return what speaks against the control database, and record the keys if nothing does."""
    connection.ensure_connection()
    wrong = control_database.complaint(connection.connection)
    if wrong or with_other_keys:
        return [wrong] if wrong else []
    return [f"{name} {SENTENCE}" for name in keys.claim()]


def _when_usable() -> list[str]:
    """Wait for the control database and its migrations; return what speaks against it."""
    said = ""
    while True:
        try:
            refused = _database_complaints()
            if refused or not pending_migrations(DEFAULT_DB_ALIAS):
                return refused
            awaited, about = "migrations_awaited", NOT_MIGRATED
        except DatabaseError as exc:
            connection.close()
            awaited, about = "database_awaited", reason(exc)
        if said != awaited:
            log.warning(awaited, error=about)
        said = awaited
        time.sleep(RETRY_S)


def _refuse_other_keys_in_development() -> None:
    """End a process whose ZSECRET_KEYS are given, and cannot read what is stored.

    Fingerprints of keys are compared in production only: here most keys may change.
    """
    if not settings.SECRETS.encryption_keys:
        return
    try:
        with connection.cursor() as cursor:
            is_unreadable = key_fingerprints.is_unreadable(cursor, key_fingerprints.CLUSTERS)
    except DatabaseError:
        return
    finally:
        connection.close()
    if is_unreadable:
        raise SystemExit(f"zonal: {key_fingerprints.ENCRYPTION} {SENTENCE}")


def _compare_keys(connection: Any, **_more: Any) -> None:
    """Fail a connection to a database that was used with other keys."""
    if connection.alias != DEFAULT_DB_ALIAS:
        return
    lacking, is_compared = [], False
    wrong = control_database.complaint(connection.connection)
    try:
        lacking = [] if wrong else keys.missing_keys()
        is_compared = not (wrong or lacking)
    finally:
        if not is_compared:
            # Else it would be used without a further comparison.
            connection.close()
    if wrong:
        log.error("database_refused", message=wrong)
        raise OperationalError(wrong)
    if lacking:
        log.error("keys_differ", settings=lacking, message=SENTENCE)
        raise OperationalError(f"{' and '.join(lacking)} {SENTENCE}")
    connection_created.disconnect(_compare_keys)


def _compare_release(connection: Any, **_more: Any) -> None:
    """Fail a connection to a database that is too old."""
    if connection.alias != DEFAULT_DB_ALIAS:
        return
    try:
        releases.check_start()
    except CommandError as exc:
        # Else it would be used without a further comparison.
        connection.close()
        log.error("database_refused", message=str(exc))  # noqa: TRY400 - the sentence says it
        raise OperationalError(str(exc)) from None
    except DatabaseError:
        connection.close()
        raise
    connection_created.disconnect(_compare_release)


def development_notice() -> str:
    """Return the line with the development token; '' without one.

    It is printed to the terminal only, never to the structured log. In production a configured
    token is refused with a warning.
    """
    if not (settings.ACCOUNTS.dev_org_id and settings.ACCOUNTS.dev_secret):
        return ""
    if development.is_refused():
        log.warning("development_token_refused", reason="production")
        return ""
    return f"Development token: {development.token_for(settings.ACCOUNTS.dev_org_id)}"


def probe_cache() -> None:
    """Log whether the cache's brain responds; the platform starts without waiting for it."""
    if not settings.HAS_CACHE:
        return
    from edgecache.api import client  # noqa: PLC0415 - only where the feature is installed

    threading.Thread(target=client.probe, name="cache-probe", daemon=True).start()
