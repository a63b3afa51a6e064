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

_left: list[str] = []


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
    """Give the URL of a new database with the brain's tables."""
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
    """Give the URL of a fresh database, which nobody uses after the block."""
    name = f"brain_{uuid.uuid4().hex}"
    _create(name, template)
    try:
        yield _url(name)
    finally:
        _left.append(name)


def drop_left() -> None:
    """Drop what tests left: in the end, for the reason that ``Kept.take`` gives."""
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    while _left:
        with _administrator() as connection:
            connection.execute(drop.format(sql.Identifier(_left.pop())))


def _create(name: str, template: str) -> None:
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    with _administrator() as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))


def _administrator() -> psycopg.Connection:
    return psycopg.connect(settings.DATABASE_URL, autocommit=True)


def _url(name: str) -> str:
    return urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()
