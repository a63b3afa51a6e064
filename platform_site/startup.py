"""The start of a process: what production refuses, and the messages of a web server."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final, cast

import structlog
from django.conf import settings
from django.core import checks
from django.core.checks import Tags
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.signals import connection_created

from accounts.tokens import development
from common.key_fingerprints import SENTENCE
from operations.doctor import keys

log = structlog.get_logger(__name__)

# Commands that use no key: what builds an image or configures nginx, and reports of what is wrong.
# The brain refuses by itself what it cannot run with.
KEYLESS: Final = frozenset(
    {
        "check",
        "collectstatic",
        "doctor",
        "gatewayconfig",
        "help",
        "movestore",
        "runbrain",
        "version",
    }
)
# It makes up for a key that is lost.
WITH_OTHER_KEYS: Final = "rotatekeys"
RETRY_S: Final = 1.0


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

    waits: for the database, for as long as it takes. Otherwise keys are compared on the first
    connection to it, which fails where they differ.
    Raises SystemExit with a sentence for each setting.
    """
    if not settings.IS_PRODUCTION:
        return
    found = checks.run_checks(tags=[Tags.security, "settings"], include_deployment_checks=True)
    wrong = [message for message in found if message.is_serious() and not message.is_silenced()]
    if wrong:
        raise SystemExit("\n".join(f"zonal: {message.msg} ({message.id})" for message in wrong))
    if with_other_keys:
        return
    try:
        lacking = _claim_when_reachable() if waits else keys.claim()
    except DatabaseError as exc:
        log.warning("keys_not_compared", error=type(exc).__name__)
        connection_created.connect(_compare_keys)
        return
    finally:
        # A server forks after this.
        connection.close()
        cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS]).close_pool()  # type: ignore[attr-defined]  # PostgreSQL's
    if lacking:
        raise SystemExit("\n".join(f"zonal: {name} {SENTENCE}" for name in lacking))


def _claim_when_reachable() -> list[str]:
    is_logged = False
    while True:
        try:
            return keys.claim()
        except DatabaseError as exc:
            connection.close()
            if not is_logged:
                log.warning("database_awaited", error=str(exc).strip())
            is_logged = True
        time.sleep(RETRY_S)


def _compare_keys(connection: Any, **_more: Any) -> None:
    """Fail a connection to a database that was used with other keys."""
    if connection.alias != DEFAULT_DB_ALIAS:
        return
    lacking, is_compared = [], False
    try:
        lacking = keys.missing_keys()
        is_compared = not lacking
    finally:
        if not is_compared:
            # Else it would be used without a further comparison.
            connection.close()
    if lacking:
        log.error("keys_differ", settings=lacking, message=SENTENCE)
        raise OperationalError(f"{' and '.join(lacking)} {SENTENCE}")
    connection_created.disconnect(_compare_keys)


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
