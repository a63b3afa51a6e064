"""Brains over a real database, and origins that are real servers on loopback."""

import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from tests.edgecache.brain.brains import Brain, Rows, running
from tests.edgecache.brain.http_origin import HttpOrigin

ROOT = Path(__file__).resolve().parents[3]
EMPTY = "TRUNCATE {} RESTART IDENTITY CASCADE"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run on asyncio, as the brain does."""
    return "asyncio"


@pytest.fixture(scope="session")
def brain_url() -> Iterator[str]:
    """Give the URL of a database with the brain's tables alone."""
    name = f"brain_{uuid.uuid4().hex}"
    url = urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "brain", "-v0"],
            cwd=ROOT,
            check=True,
            env=os.environ | {"DATABASE_URL": url},
        )
        yield url
    finally:
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


@pytest.fixture
def rows(brain_url: str) -> Rows:
    """Give the brain's tables, empty."""
    tables = Rows(brain_url)
    _empty(tables)
    return tables


@pytest.fixture
async def brain(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Give a brain."""
    async with running(rows.url, tmp_path / "brain") as one:
        yield one


@pytest.fixture
async def other(brain: Brain, rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Give a second brain over the same database, with files of its own."""
    async with running(rows.url, tmp_path / "other") as another:
        await brain.coherence.wait_until_current(5)
        yield another


@pytest.fixture
async def origin() -> AsyncIterator[HttpOrigin]:
    """Give an HTTP origin."""
    async with HttpOrigin() as server:
        yield server


def _empty(rows: Rows) -> None:
    with psycopg.connect(rows.url, autocommit=True) as database:
        names = database.execute(
            "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
            " WHERE schemaname = 'public' AND tablename LIKE 'brain\\_%'"
        ).fetchone()
        assert names is not None
        database.execute(EMPTY.format(names[0]).encode())
