"""What a server must be, and what it need not be: what a session can set, the platform sets."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.core.management.base import CommandError
from django.test import override_settings

from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.hardening import cluster as requirements
from sqlgateway.models import Cluster
from sqlgateway.pg import pool
from tests.commands import facts, refused, run
from tests.operations.doctor.support import findings
from tests.ports import free_port
from tests.sqlgateway import support
from tests.waiting import wait_until

pytestmark = pytest.mark.provisions

OWN_VERSION = (
    "CREATE OR REPLACE FUNCTION pg_catalog.version() RETURNS text LANGUAGE internal"
    " STABLE STRICT PARALLEL SAFE AS 'pgsql_version'"
)
OTHER_DEFAULTS = {
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "sql_standard",
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "quote_all_identifiers": "on",
    "timezone": "'Asia/Kathmandu'",
    "extra_float_digits": "-3",
    "client_min_messages": "error",
}
LOG_ALL = {
    "log_statement": "'all'",
    "log_min_error_statement": "debug5",
    "log_min_duration_statement": "0",
    "log_transaction_sample_rate": "1",
    "log_duration": "on",
}


@contextmanager
def _configured(url: str, values: dict[str, str]) -> Iterator[psycopg.Connection]:
    """Change a server's settings while the block runs."""
    with psycopg.connect(url, autocommit=True) as server:
        for name, value in values.items():
            server.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        server.execute("SELECT pg_reload_conf()")
        last = next(reversed(values))
        wait_until(lambda: _is_set(url, last, values[last].strip("'")))
        try:
            yield server
        finally:
            for name in values:
                server.execute(f"ALTER SYSTEM RESET {name}".encode())
            server.execute("SELECT pg_reload_conf()")


def _is_set(url: str, name: str, value: str) -> bool:
    with psycopg.connect(url) as server:
        return server.execute(f"SHOW {name}".encode()).fetchone() == (value,)


def test_a_server_with_other_defaults_works_like_any_other(
    databases: None, second_url: str, url_file: str
) -> None:
    with _configured(second_url, OTHER_DEFAULTS):
        facts("addcluster", "second", "--url-file", url_file, "--accept-findings")
        Cluster.objects.filter(name="default").update(state=Cluster.State.DRAINING)
        alice = support.caller(support.organization("Alice's"))
        alice.sql("CREATE TABLE t (id int, at date, span interval, raw bytea)")
        written = alice.post(
            {
                "query": "INSERT INTO t VALUES (1, $1, '1 day', decode('00', 'hex')) RETURNING *",
                "params": ["2026-02-01"],
            },
            Idempotency_Key="k" * 20,
        )

        assert alice.database.cluster.name == "second"
        assert written.rows == [{"id": 1, "at": "2026-02-01", "span": "P1D", "raw": "\\x00"}]
        assert alice.value("SHOW transaction_isolation") == "read committed"
        assert facts("rotatepasswords", "--cluster", "second")["failed"] == []
        assert facts("hardendatabases", "--all")["clusters"][-1]["error"] == ""
        pool.CONNECTION_POOL.clear()
        PLACEMENT_CACHE.clear()
        assert alice.value("SELECT count(*) FROM t") == 1


def test_no_verifier_of_a_password_gets_into_a_servers_log(
    databases: None, second_url: str, url_file: str
) -> None:
    facts("addcluster", "second", "--url-file", url_file, "--accept-findings")
    with _configured(second_url, LOG_ALL) as server:
        [[folder]] = server.execute("SHOW data_directory").fetchall()
        server_log = Path(folder).parent / "server.log"
        Cluster.objects.filter(name="default").update(state=Cluster.State.DRAINING)
        before = server_log.stat().st_size
        alice = support.caller(support.organization("Alice's"))
        alice.value("SELECT 1")
        pool.CONNECTION_POOL.clear()
        server.execute(f"ALTER ROLE {alice.database.reader_role} RENAME TO gone".encode())
        with pytest.raises(CommandError) as failed:
            run("rotatepasswords", "--cluster", "second")
        server.execute(f"ALTER ROLE gone RENAME TO {alice.database.reader_role}".encode())

        assert failed.value.returncode == 4
        written = server_log.read_text(errors="replace")[before:]
        assert "RENAME TO gone" in written
        assert "SCRAM-SHA-256" not in written


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu, built 2026/01/01)", "CockroachDB"),
        ("PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu", "YugabyteDB"),
        ("PostgreSQL 12.12 (Greenplum Database 7.1.0 build x) on x86_64", "Greenplum"),
        ("QuestDB 9", "QuestDB"),
    ],
)
def test_another_engine_is_refused_by_its_name(
    databases: None, second_url: str, url_file: str, version: str, name: str
) -> None:
    with psycopg.connect(second_url, autocommit=True) as server:
        server.execute(
            "CREATE OR REPLACE FUNCTION pg_catalog.version() RETURNS text"
            f" LANGUAGE sql STABLE AS $$SELECT '{version}'$$".encode()
        )
        try:
            sentence, error = refused("addcluster", "other", "--url-file", url_file)
        finally:
            server.execute(OWN_VERSION)

    assert error["code"] == "server_unfit"
    assert sentence.startswith(f"The server is {name}, ")


def test_citus_is_refused_everywhere(databases: None, second_url: str, url_file: str) -> None:
    caller = support.caller(support.organization("Alice's"))
    with psycopg.connect(second_url, autocommit=True) as server:
        server.execute("ALTER DATABASE postgres SET citus.shard_count = 32")
        try:
            sentence, error = refused("addcluster", "other", "--url-file", url_file)
            with override_settings(SQL=replace(settings.SQL, cluster_url=second_url)):
                answer = caller.sql("SELECT 1")
                [row] = facts("listclusters")["clusters"]
                [(_, message, _)] = findings("clusters", is_healthy=False)
        finally:
            server.execute("ALTER DATABASE postgres RESET citus.shard_count")

    assert (error["code"], sentence.startswith("The server is Citus, ")) == ("server_unfit", True)
    assert (answer.status, answer.code) == (503, "sql_unavailable")
    assert row["reason"] == sentence
    assert sentence in message


def test_a_version_that_is_not_supported_is_refused_without_a_choice(
    databases: None, url_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts("listclusters")
    monkeypatch.setattr(requirements, "MINOR_FLOOR", {14: 0})

    sentence, error = refused("addcluster", "old", "--url-file", url_file, "--accept-findings")

    assert error["code"] == "server_unfit"
    assert "is not among 15 to 18" in sentence


def test_a_superuser_that_is_none_any_more_is_named(databases: None, second_url: str) -> None:
    with psycopg.connect(second_url, autocommit=True) as server:
        server.execute("CREATE ROLE once SUPERUSER LOGIN PASSWORD 'once'")
        server.execute("GRANT CONNECT ON DATABASE postgres TO once")
        parts = urlsplit(second_url)
        host = parts.netloc.rpartition("@")[2]
        url = parts._replace(netloc=f"once:once@{host}").geturl()
        with override_settings(SQL=replace(settings.SQL, cluster_url=url)):
            assert facts("listclusters")["clusters"][0]["answers"]
            server.execute("ALTER ROLE once NOSUPERUSER")
            [row] = facts("listclusters")["clusters"]
            [(_, message, _)] = findings("clusters", is_healthy=False)
        server.execute("DROP OWNED BY once")
        server.execute("DROP ROLE once")

    assert "no superuser" in row["reason"]
    assert "no superuser" in message


def test_what_a_server_said_reaches_operators_and_no_tenant(
    databases: None, second_url: str, url_file: str, tmp_path: Path
) -> None:
    parts = urlsplit(second_url)
    host = parts.netloc.rpartition("@")[2]
    user = parts.username
    wrong = parts._replace(netloc=f"{user}:wrong-secret@{host}").geturl()
    caller = support.caller(support.organization("Alice's"))
    with override_settings(SQL=replace(settings.SQL, cluster_url=wrong)):
        answer = caller.sql("SELECT 1")
        [row] = facts("listclusters")["clusters"]
        [(_, message, _)] = findings("clusters", is_healthy=False)
        text, _ = refused("checkisolation")

    for said in (row["reason"], message, text):
        assert f'password authentication failed for user "{user}"' in said
        assert "wrong-secret" not in said
    assert "authentication" not in str(answer.body)
    for url, words in (
        (f"postgresql://zonal@127.0.0.1:{free_port()}/postgres", "Connection refused"),
        ("postgresql://zonal:hu@hush.invalid/sh@127.0.0.1/postgres", "failed to resolve host"),
        ("postgresql://zonal:hush@127.0.0.1:hush/postgres", "invalid integer value"),
        ("postgresql://zonal:hush@127.0.0.1/postgres?hush=1", "its URL cannot be read"),
    ):
        Path(url_file).write_text(url)
        sentence, error = refused("addcluster", "away", "--url-file", url_file)
        assert error["code"] == "sql_unavailable"
        assert words in sentence
        assert "hush" not in sentence
