"""Databases that are copied from a template, which is migrated once per run."""

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

from tests.throwaway import is_throwaway

ROOT = Path(__file__).resolve().parents[2]
PLAIN = "template1"
# Only one of the test processes on this cluster creates the template.
LOCK = 7_313_001

_left: list[str] = []


def migrate(url: str, *apps: str) -> None:
    """Create the tables of these apps in a database, or of all."""
    subprocess.run(
        [sys.executable, "manage.py", "migrate", *apps, "-v0"],
        cwd=ROOT,
        check=True,
        env=os.environ | {"DATABASE_URL": url},
    )


def template(name: str, *apps: str) -> str:
    """Return the name of a database with the tables of these apps, or of all."""
    with _administrator() as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name])
        if not found.rowcount:
            # It gets its name only when it is complete.
            unfinished = f"brain_{uuid.uuid4().hex}"
            _create(unfinished, PLAIN)
            migrate(_url(unfinished), *apps)
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            connection.execute(rename.format(sql.Identifier(unfinished), sql.Identifier(name)))
    return name


def fill(url: str, name: str) -> None:
    """Copy a template to an empty database of another server, which is quicker than to migrate."""
    dump = subprocess.run(["pg_dump", "--no-owner", _url(name)], check=True, capture_output=True)
    load = ["psql", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null", url]
    subprocess.run(load, input=dump.stdout, check=True)


@contextmanager
def brain_database() -> Iterator[str]:
    """Return the URL of a new database with the brain's tables."""
    with new_database(template("brain_template", "brain")) as url:
        yield url


@contextmanager
def new_database(template: str = PLAIN) -> Iterator[str]:
    """Yield the URL of a new database that is not used after the block."""
    name = f"brain_{uuid.uuid4().hex}"
    _create(name, template)
    try:
        yield _url(name)
    finally:
        _left.append(name)


def drop_left() -> None:
    """Drop the databases that tests left, at the end, for the reason in ``Kept.take``.

    Their server may end as well: then they go with it.
    """
    if is_throwaway():
        return
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


def own_files(url: str, data_dir: Path, sha256: bytes) -> list[Path]:
    """Return the files of the store in a data directory that have some bytes, by their rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT name FROM brain_storedblob WHERE blob_id = %s", [sha256])
        return [data_dir / "objects" / name for (name,) in rows.fetchall()]
