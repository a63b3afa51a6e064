"""Databases with the brain's tables alone, copied from one that is migrated once a run."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]
PLAIN = "template1"
TEMPLATE = "brain_template"
# Of all processes that test over this cluster, one makes the template.
LOCK = 7_313_001


def migrate(url: str) -> None:
    """Give a database the brain's tables."""
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "brain", "-v0"],
        cwd=ROOT,
        check=True,
        env=os.environ | {"DATABASE_URL": url},
    )


@contextmanager
def brain_database() -> Iterator[str]:
    """Give the URL of a database with the brain's tables, which goes with the block."""
    with _administrator() as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [TEMPLATE])
        if not found.rowcount:
            # Under its name only once it is whole.
            unfinished = f"brain_{uuid.uuid4().hex}"
            _create(unfinished, PLAIN)
            migrate(_url(unfinished))
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            names = (sql.Identifier(unfinished), sql.Identifier(TEMPLATE))
            connection.execute(rename.format(*names))
    with new_database(TEMPLATE) as url:
        yield url


@contextmanager
def new_database(template: str = PLAIN) -> Iterator[str]:
    """Give the URL of a fresh database, which goes with the block."""
    name = f"brain_{uuid.uuid4().hex}"
    _create(name, template)
    try:
        yield _url(name)
    finally:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        with _administrator() as connection:
            connection.execute(drop.format(sql.Identifier(name)))


def _create(name: str, template: str) -> None:
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    with _administrator() as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))


def _administrator() -> psycopg.Connection:
    return psycopg.connect(settings.DATABASE_URL, autocommit=True)


def _url(name: str) -> str:
    return urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()
