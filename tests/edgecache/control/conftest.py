"""Databases with the brain's tables alone, made from one template; brains and workers over them."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from psycopg import sql

from tests.edgecache.s3.cluster import Cluster

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def template() -> Iterator[str]:
    """Give the name of a migrated database to copy."""
    name = f"brain_template_{uuid.uuid4().hex}"
    _create(name)
    try:
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "brain", "-v0"],
            cwd=ROOT,
            check=True,
            env=os.environ | {"DATABASE_URL": _url(name)},
        )
        yield name
    finally:
        _drop(name)


@pytest.fixture
def database_url(template: str) -> Iterator[str]:
    """Give an empty database of the test's own."""
    name = f"brain_{uuid.uuid4().hex}"
    _create(name, template=template)
    try:
        yield _url(name)
    finally:
        _drop(name)


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Give a way to start brains over the test's database, with workers of their own."""
    running: list[Cluster] = []
    secret_keys = Fernet.generate_key().decode()

    def begin(*, workers: int = 0, **changes: Any) -> Cluster:
        folder = tmp_path / f"brain{len(running)}"
        folder.mkdir()
        cluster = Cluster(folder, database_url, secret_keys, workers=workers, **changes)
        if running:
            cluster.secret = running[0].secret
        running.append(cluster)
        return cluster.start()

    yield begin
    for cluster in reversed(running):
        cluster.stop()


@pytest.fixture
def brain(start: Callable[..., Cluster]) -> Cluster:
    """Give a brain without workers."""
    return start()


def _url(name: str) -> str:
    return urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()


def _create(name: str, *, template: str = "template1") -> None:
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    _run(statement.format(sql.Identifier(name), sql.Identifier(template)))


def _drop(name: str) -> None:
    _run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _run(statement: sql.Composed) -> None:
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        connection.execute(statement)
