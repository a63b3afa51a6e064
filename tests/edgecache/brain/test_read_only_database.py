"""A database that takes no writes: S3's 503 for writes, reads, and a brain that goes on."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.db.database import BrainDatabase
from tests.edgecache.brain.brains import Rows
from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, until

pytestmark = pytest.mark.slow

STATES = ["25006", "53100", "53200", "53300", "57P01", "57P02", "57P03", "57P04", "57P05"]


@contextmanager
def read_only(url: str) -> Iterator[None]:
    """Let a database take no writes; connections that there are begin anew."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute("SET default_transaction_read_only = off")
        change = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
        connection.execute(change.format(name, sql.SQL("on")))
        _end_others(connection)
        try:
            yield
        finally:
            # Connections are left: each is to be closed by the write that it refuses.
            connection.execute(change.format(name, sql.SQL("off")))


def _end_others(connection: psycopg.Connection) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_writes_of_objects_are_503_while_the_database_takes_none(
    start: Callable[..., Cluster],
) -> None:
    cluster = start()
    keys = cluster.tenant()
    signer = Signer(keys, cluster.url)

    def ask(method: str, target: str, body: bytes = b"") -> Answer:
        signed = signer.sign(method, target, payload=hashlib.sha256(body).hexdigest())
        return send(cluster.url, method, target, signed, body)

    assert ask("PUT", "/docs").status == 200
    assert ask("PUT", "/docs/old", b"x").status == 200
    with read_only(cluster.database_url):
        for method, target in (("PUT", "/docs/new"), ("DELETE", "/docs/old"), ("PUT", "/other")):
            refused = ask(method, target, b"")
            assert (refused.status, refused.code) == (503, "ServiceUnavailable")
            assert refused.headers["retry-after"] == "1"
        assert ask("GET", "/docs/old").body == b"x"
    until(lambda: ask("PUT", "/docs/new", b"y").status == 200)
    assert ask("GET", "/docs/new").body == b"y"


async def test_a_state_of_the_server_is_an_unavailable_database(rows: Rows) -> None:
    database = BrainDatabase(rows.url, max_connections=1)
    await database.start()
    try:
        for sqlstate in STATES:
            with pytest.raises(DatabaseUnavailable):
                await database.run(f"DO $$ BEGIN RAISE SQLSTATE '{sqlstate}'; END $$")
    finally:
        await database.stop()


async def test_a_connection_that_refused_a_write_is_not_used_again(rows: Rows) -> None:
    database = BrainDatabase(rows.url, max_connections=1)
    await database.start()
    try:
        await database.run("SET default_transaction_read_only = on")
        with pytest.raises(DatabaseUnavailable):
            await database.run("DELETE FROM brain_bucket")
        assert await database.run("DELETE FROM brain_bucket") == 0
    finally:
        await database.stop()
