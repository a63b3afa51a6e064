"""Databases with the brain's tables alone, made from one template; brains and workers over them."""

import contextlib
import hashlib
import os
import secrets
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import psycopg
import pytest
from botocore.config import Config
from cryptography.fernet import Fernet
from django.conf import settings
from psycopg import sql

from tests.edgecache.control.support import Put, Rows
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
    with new_database(template) as url:
        yield url


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


@pytest.fixture(scope="session")
def shared(template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a brain for the tests that only talk to one."""
    with new_database(template) as url:
        cluster = Cluster(
            tmp_path_factory.mktemp("shared"), url, Fernet.generate_key().decode(), workers=0
        )
        try:
            yield cluster.start()
        finally:
            cluster.stop()


@pytest.fixture
def brain(shared: Cluster) -> Cluster:
    """Give a brain that knows no node; what belongs to tenants, tests keep apart themselves."""
    with psycopg.connect(shared.database_url, autocommit=True) as connection:
        connection.execute(
            "TRUNCATE brain_node, brain_usageline, brain_measurement, brain_receipt CASCADE"
        )
    return shared


@contextlib.contextmanager
def new_database(template: str = "template1") -> Iterator[str]:
    """Give the URL of a fresh database, which goes with the block."""
    name = f"brain_{uuid.uuid4().hex}"
    _create(name, template=template)
    try:
        yield _url(name)
    finally:
        _drop(name)


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


@pytest.fixture
def rows(brain: Cluster) -> Rows:
    """Give the brain's tables."""
    return Rows(brain.database_url)


@pytest.fixture
def put(brain: Cluster) -> Put:
    """Give a way to have an object: some bytes in a new bucket of a new tenant; their hash."""

    def write(data: bytes = b"", *, is_public: bool = False) -> bytes:
        data = data or secrets.token_bytes(100)
        keys = brain.tenant()
        made = brain.call(
            "POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "is_public": is_public}
        )
        assert made["id"]
        client = boto3.client(
            "s3",
            endpoint_url=brain.url,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.put_object(Bucket="docs", Key="key", Body=data)
        client.close()
        return hashlib.sha256(data).digest()

    return write
