"""The brain's start from the command line, with errors in one sentence."""

import ipaddress
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Final

import psycopg
import structlog
import uvloop
from django.conf import settings

from common import control_database, tracing
from common.key_fingerprints import ENCRYPTION, SENTENCE, STORED, has_table, is_unreadable, lacking
from common.machine.errors import StartError
from common.machine.reasons import reason
from common.pending_migrations import NOT_MIGRATED, compare
from common.settings.env import Env
from common.version import TOO_OLD, VERSION
from edgecache.brain import migrations
from edgecache.brain.app import assemble
from edgecache.brain.conf.brain import BrainSettings
from edgecache.brain.process.sockets import Sockets, open_sockets
from edgecache.brain.router import LABEL
from edgecache.http.server.http_server import tls_context
from edgecache.runtime.resource_limits import share_memory

CONNECT_S: Final = 2
RETRY_S: Final = 1.0
OWN: Final = tuple(column for column in STORED if column[0].startswith("brain_"))
KNOWN: Final = {path.stem for path in Path(migrations.__file__).parent.glob("[0-9]*.py")}
APPLIED: Final = "SELECT name FROM django_migrations WHERE app = 'brain'"

log = structlog.get_logger(__name__)


def refusal(chosen: BrainSettings) -> str:
    """Return why a brain cannot run with these settings; "" if it can."""
    if not chosen.secret:
        return (
            "The brain needs ZCACHE_BRAIN_SECRET (or BRAIN_SECRET): at least 32 characters that "
            "the platform knows too."
        )
    if chosen.is_production and not Env(os.environ).raw("ZSECRET_KEYS"):
        return (
            "The brain needs ZSECRET_KEYS, the platform's own: without them it cannot read the "
            "access keys of its tenants."
        )
    if not chosen.database_url:
        return "The brain needs a database: set DATABASE_URL or ZBRAIN_DATABASE_URL."
    is_local = ipaddress.ip_address(chosen.workers.address).is_loopback
    if chosen.is_production and not (is_local or chosen.tls_cert):
        return (
            "ZBRAIN_WORKER_PORT is not at a loopback address: set ZBRAIN_TLS_CERT and "
            "ZBRAIN_TLS_KEY, so that workers' credentials are not sent in clear, or listen on "
            "127.0.0.1 behind a proxy that does TLS."
        )
    return ""


def _refuse_database(chosen: BrainSettings) -> str:
    """Return why the database, or ZSECRET_KEYS with it, cannot be used, or "".

    Waits for the database and its migrations, for as long as it takes: without them a brain serves
    nothing, and with other keys it would store secrets that no other process can read.
    """
    if not chosen.is_production:
        return _refuse_too_old(chosen)
    said = ""
    while True:
        awaited, about = "migrations_awaited", NOT_MIGRATED
        try:
            wrong = _database_complaint(chosen) or _refuse_too_old(chosen)
            if wrong or _applied(chosen) >= KNOWN:
                return wrong
        except psycopg.OperationalError as exc:
            awaited, about = "database_awaited", reason(exc)
        except psycopg.Error as exc:
            log.warning("keys_not_compared", error=reason(exc))
            return ""
        if said != awaited:
            log.warning(awaited, error=about)
        said = awaited
        time.sleep(RETRY_S)


def _refuse_too_old(chosen: BrainSettings) -> str:
    """Return why the database cannot be used, or "" if it can or does not answer."""
    try:
        applied = _applied(chosen)
    except psycopg.Error:
        return ""
    if not applied - KNOWN:
        return ""
    # Not by Django's loader: its apps are not set up here.
    modules = {name: import_module(f"{migrations.__name__}.{name}") for name in KNOWN}
    known = {(LABEL, name): module.Migration.replaces for name, module in modules.items()}
    unknown, is_complete = compare({(LABEL, name) for name in applied}, known)
    return TOO_OLD if unknown and not is_complete else ""


def _applied(chosen: BrainSettings) -> set[str]:
    """Return the names of the migrations that the brain's database has."""
    with psycopg.connect(chosen.database_url, connect_timeout=CONNECT_S) as connection:
        cursor = connection.cursor()
        if not has_table(cursor, "django_migrations"):
            return set()
        return {name for (name,) in cursor.execute(APPLIED)}


def _database_complaint(chosen: BrainSettings) -> str:
    """Return what speaks against the database, and against the platform's where it is known."""
    url, rings = settings.DATABASE_URL, {ENCRYPTION: settings.SECRET_KEYS}
    with psycopg.connect(url or chosen.database_url, connect_timeout=CONNECT_S) as connection:
        connection.autocommit = True
        wrong = control_database.complaint(connection)
        if wrong:
            return wrong
        cursor = connection.cursor()
        # A brain's own database has no fingerprints.
        is_other = bool(lacking(cursor, rings)) if url else is_unreadable(cursor, OWN)
    return f"{ENCRYPTION} {SENTENCE}" if is_other else ""


def run() -> int:
    """Run a brain with Django's settings; return the exit status."""
    chosen = settings.BRAIN
    for unknown in settings.UNKNOWN_SETTINGS:
        log.warning("setting_unknown", message=unknown.sentence())
    sentence = refusal(chosen)
    try:
        if not sentence:
            check(chosen)
            log.info("brain_starting", version=VERSION)
            sentence = _refuse_database(chosen)
        if not sentence:
            share_memory(chosen.processes.count)
            return uvloop.run(_serve(chosen, open_sockets(chosen)))
    except StartError as error:
        sentence = str(error)
    sys.stderr.write(f"{sentence}\n")
    return 1


def check(chosen: BrainSettings) -> None:
    """Raise StartError, in one sentence, for files that no brain could use."""
    try:
        chosen.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sentence = f"{chosen.data_dir} cannot be used ({error.strerror}). It is in ZDATA_DIR."
        raise StartError(sentence) from None
    if chosen.tls_cert and chosen.tls_key:
        try:
            tls_context(chosen.tls_cert, chosen.tls_key)
        except OSError as error:
            sentence = f"ZBRAIN_TLS_CERT and ZBRAIN_TLS_KEY cannot be used ({error})."
            raise StartError(sentence) from None


async def _serve(chosen: BrainSettings, sockets: Sockets) -> int:
    tracing.start("zonal-brain", settings.TRACES_URL, settings.TRACES_SHARE)
    try:
        return await assemble(chosen).run(sockets)
    finally:
        tracing.stop()
