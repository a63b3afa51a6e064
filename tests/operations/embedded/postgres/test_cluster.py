"""Access to a cluster, and its recovery after stops, kills and reused process ids."""

import os
import signal
import stat
import subprocess
import threading
from pathlib import Path

import psycopg
import pytest

from common.machine.errors import AlreadyRunningError, ClusterError
from operations.embedded.postgres.cluster import CONTROL, TENANTS, LocalCluster
from operations.embedded.supervisor import processes_in
from tests.operations.embedded.support import MakeCluster, postmaster_pid, start
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Clusters = dict[str, LocalCluster]


def ask(cluster: LocalCluster, query: str) -> list[tuple[object, ...]]:
    """Ask the cluster as its superuser."""
    with psycopg.connect(cluster.superuser_url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_control_role_owns_its_database_and_little_else(running: Clusters) -> None:
    with psycopg.connect(running["control"].url) as connection:
        row = connection.execute(
            "SELECT current_user::text, current_database()::text, rolsuper, rolcreatedb,"
            " rolcreaterole, pg_get_userbyid(datdba)::text FROM pg_roles, pg_database"
            " WHERE rolname = current_user AND datname = current_database()"
        ).fetchone()

    assert row == ("zonal", "zonal", False, False, False, "zonal")


def test_the_tenants_url_is_that_of_the_provisioner(running: Clusters) -> None:
    with psycopg.connect(running["tenants"].url) as connection:
        row = connection.execute(
            "SELECT rolname::text, rolsuper FROM pg_roles WHERE rolname = current_user"
        ).fetchone()

    assert row == ("zonal_provisioner", True)


@pytest.mark.parametrize("name", ["control", "tenants"])
def test_a_wrong_password_is_refused(running: Clusters, name: str) -> None:
    cluster = running[name]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(cluster.superuser_url, password="wrong")


def test_the_credentials_of_one_cluster_do_not_open_the_other(running: Clusters) -> None:
    password = psycopg.conninfo.conninfo_to_dict(running["control"].url)["password"]

    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(running["tenants"].url, password=password)


def test_every_rule_of_pg_hba_requires_a_password_or_rejects(running: Clusters) -> None:
    rules = ask(
        running["tenants"], "SELECT auth_method FROM pg_hba_file_rules ORDER BY rule_number"
    )

    assert rules == [("scram-sha-256",), ("reject",), ("reject",), ("reject",)]


@pytest.mark.parametrize("name", ["control", "tenants"])
def test_nothing_listens_on_tcp(running: Clusters, name: str) -> None:
    cluster = running[name]
    links = Path(f"/proc/{postmaster_pid(cluster)}/fd").iterdir()
    sockets = {str(link.readlink()).removeprefix("socket:[")[:-1] for link in links}
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    lines = [
        line.split()
        for table in tables
        if table.exists()
        for line in table.read_text().splitlines()
    ]

    assert sockets.isdisjoint({fields[9] for fields in lines})
    assert ask(cluster, "SHOW listen_addresses") == [("",)]


def test_the_server_cannot_change_its_own_rules(running: Clusters) -> None:
    for cluster in running.values():
        shown = ask(cluster, "SELECT setting FROM pg_settings WHERE name ~ '^(config|hba)_file$'")
        files = [Path(str(setting)) for (setting,) in shown]

        assert len(files) == 2
        assert all(path.parent == cluster.home for path in files)
        assert all(path.stat().st_uid == os.geteuid() for path in files)


def test_folders_and_passwords_are_closed_to_others(running: Clusters) -> None:
    for cluster in running.values():
        assert mode_of(cluster.data) == 0o700
        assert mode_of(cluster.socket_dir) == 0o700
        assert {mode_of(path) for path in cluster.home.glob("*.password")} == {0o600}


def test_each_server_started_by_root_runs_as_its_own_system_user(
    running: Clusters,
) -> None:
    owners = {
        name: Path(f"/proc/{postmaster_pid(cluster)}").stat().st_uid
        for name, cluster in running.items()
    }

    if os.geteuid() == 0:
        assert 0 not in owners.values()
        assert owners["control"] != owners["tenants"]
    else:
        assert set(owners.values()) == {os.geteuid()}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("jit", "off"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_prepared_transactions", "0"),
        ("password_encryption", "scram-sha-256"),
        ("shared_buffers", "32MB"),
        ("max_connections", "150"),
        ("log_error_verbosity", "terse"),
        ("log_min_error_statement", "panic"),
    ],
)
def test_the_tenants_server_is_set_up_as_designed(
    running: Clusters, setting: str, value: str
) -> None:
    assert ask(running["tenants"], f"SHOW {setting}") == [(value,)]


def test_one_tenants_backend_cannot_take_all_memory(running: Clusters) -> None:
    limits = Path(f"/proc/{postmaster_pid(running['tenants'])}/limits").read_text()
    line = next(line for line in limits.splitlines() if line.startswith("Max address space"))

    assert line.split()[3] == str(1024**3)


def test_text_sorts_by_code_point_and_knows_unicode(running: Clusters) -> None:
    assert ask(running["tenants"], "SELECT upper('ä'), 'Z' < 'a'") == [("Ä", True)]


def test_data_survives_a_stop_and_a_start(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(CONTROL)
    start(cluster)
    ask(cluster, "CREATE TABLE kept AS SELECT 42 AS n")
    cluster.stop()
    cluster.release()

    again = make_cluster(CONTROL)
    start(again)

    assert again.url == cluster.url
    assert ask(again, "SELECT n FROM kept") == [(42,)]


def test_a_killed_postmaster_with_a_busy_backend_is_started_again(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(TENANTS)
    start(cluster)
    ask(cluster, "CREATE TABLE kept AS SELECT 42 AS n")
    ask(cluster, "CHECKPOINT")
    busy = threading.Thread(target=_keep_busy, args=(cluster,))
    busy.start()
    wait_until(lambda: _busy_backends(cluster))
    os.kill(postmaster_pid(cluster), signal.SIGKILL)

    start(cluster)
    busy.join(10)

    assert ask(cluster, "SELECT n FROM kept") == [(42,)]
    assert len(processes_in(cluster.data.resolve(), program="postgres")) < 10


def _keep_busy(cluster: LocalCluster) -> None:
    with pytest.raises(psycopg.OperationalError):
        ask(cluster, "SELECT count(*) FROM generate_series(1, 1000000000000)")


def _busy_backends(cluster: LocalCluster) -> bool:
    return ask(
        cluster,
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM g%'",
    ) == [(True,)]


def test_a_stale_pid_file_neither_stops_the_start_nor_ends_another_process(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(CONTROL)
    cluster.prepare()
    stranger = subprocess.Popen(["/bin/sleep", "60"])
    try:
        (cluster.data / "postmaster.pid").write_text(f"{stranger.pid}\n{cluster.data}\n")
        start(cluster)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_cluster_in_use_is_refused_with_one_sentence(make_cluster: MakeCluster) -> None:
    make_cluster(CONTROL).prepare()

    with pytest.raises(AlreadyRunningError, match=f"in use by process {os.getpid()}"):
        make_cluster(CONTROL).prepare()


def test_data_of_another_major_version_is_refused(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(CONTROL)
    cluster.prepare()
    (cluster.data / "PG_VERSION").write_text("15\n")

    with pytest.raises(ClusterError, match=r"created by PostgreSQL 15.*ZPG_BINDIR"):
        cluster.prepare()


def test_an_incomplete_cluster_is_created_again(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(CONTROL)
    half_made = cluster.home / "initdb" / "data"
    half_made.mkdir(parents=True)

    cluster.prepare()

    assert cluster.data.is_dir()
    assert not half_made.exists()
