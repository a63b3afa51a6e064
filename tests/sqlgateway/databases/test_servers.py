"""Several servers: placement, and the commands that add and drain them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.test import override_settings

from sqlgateway.clusters import servers
from sqlgateway.databases import stock, tasks, tenant_databases
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster, Database, RetiredDatabase
from tests.commands import facts, help_of, misused, refused
from tests.operations.doctor.support import findings
from tests.sqlgateway import support
from tests.sqlgateway.support import Caller

pytestmark = pytest.mark.provisions

AWAY = "postgresql://nobody:x@127.0.0.1:1/postgres"


@pytest.mark.parametrize("name", ["addcluster", "listclusters", "draincluster"])
def test_the_commands_of_clusters_explain_themselves(name: str) -> None:
    assert "Exit status: 0 done" in help_of(name)


def test_a_new_database_goes_to_the_emptiest_open_cluster(alice: Caller, second: Cluster) -> None:
    assert alice.value("SELECT 1") == 1
    bob = support.caller(support.organization("Bob's"))
    assert bob.value("SELECT 1") == 1

    assert alice.database.cluster.name == "default"
    assert bob.database.cluster == second
    for row in facts("listclusters")["clusters"]:
        assert (row["databases"], row["state"], row["answers"]) == (1, "open", True)


def test_a_full_or_draining_cluster_gets_no_database(databases: None, second: Cluster) -> None:
    Cluster.objects.filter(name="default").update(capacity=0)
    Cluster.objects.filter(name="second").update(state=Cluster.State.DRAINING)

    with pytest.raises(EngineUnavailable, match="has room"):
        servers.emptiest(None)


def test_a_drained_cluster_loses_its_stock_and_is_closed(second: Cluster, second_url: str) -> None:
    Cluster.objects.filter(name="default").update(capacity=0)
    assert stock.refill(1) == 1
    (prepared,) = Database.objects.all()

    answer = facts("draincluster", "second")

    assert (answer["state"], answer["databases"]) == ("closed", 0)
    with psycopg.connect(second_url) as connection:
        names = "SELECT count(*) FROM pg_database WHERE datname = %s"
        assert connection.execute(names, [prepared.dbname]).fetchone() == (0,)
    assert facts("draincluster", "second") == answer


def test_a_cluster_with_environments_stays_until_they_are_moved(
    alice: Caller, second: Cluster
) -> None:
    Cluster.objects.filter(name="default").update(capacity=0)
    alice.sql("CREATE TABLE t (id int)")

    answer = facts("draincluster", "second")

    assert (answer["state"], answer["databases"]) == ("draining", 1)
    assert alice.value("SELECT count(*) FROM t") == 0


def test_a_cluster_can_be_added_again_and_gets_the_new_capacity(
    second: Cluster, url_file: str
) -> None:
    facts("draincluster", "second")

    arguments = ("second", "--url-file", url_file, "--accept-findings", "--capacity", "7")
    answer = facts("addcluster", *arguments)

    assert (answer["state"], answer["capacity"]) == ("open", 7)
    assert Cluster.objects.filter(name="second").count() == 1


def test_a_cluster_of_one_organization_takes_its_databases_only(
    second: Cluster, url_file: str
) -> None:
    add = ("addcluster", "second", "--url-file", url_file, "--accept-findings")
    alice, bob, carol = (support.caller(support.organization(name)) for name in ("A", "B", "C"))
    organization = bob.scope.organization_id
    assert alice.value("SELECT 1") == carol.value("SELECT 1") == 1
    assert carol.database.cluster == second

    # Others have databases there.
    assert refused(*add, "--organization", f"{organization}")[1]["code"] == "cluster_taken"
    facts("moveenvironment", f"{carol.scope.organization_id}", "live", "--to", "default")
    assert facts(*add, "--organization", f"{organization}")["org_id"] == organization
    assert refused(*add, "--organization", "99999999")[1]["code"] == "organization_not_found"
    # What is not said stays.
    assert facts(*add)["org_id"] == organization

    # The other one is much fuller.
    assert stock.refill(1) == 1
    dora = support.caller(support.organization("D"))
    assert bob.value("SELECT 1") == dora.value("SELECT 1") == 1
    assert (bob.database.cluster, dora.database.cluster.name) == (second, "default")
    arguments = (f"{dora.scope.organization_id}", "live", "--to", "second")
    assert refused("moveenvironment", *arguments)[1]["code"] == "cluster_not_open"
    Cluster.objects.filter(name="second").update(capacity=1)
    with pytest.raises(EngineUnavailable, match="has room"):
        servers.emptiest(organization)

    assert facts(*add, "--shared")["org_id"] is None
    assert servers.emptiest(dora.scope.organization_id) == second


def test_one_server_cannot_be_two_clusters(databases: None, tmp_path: Path) -> None:
    servers.emptiest(None)
    stock.refill(1)
    url = tmp_path / "url"
    url.write_text(settings.SQL.cluster_url)

    sentence, error = refused("addcluster", "twin", "--url-file", str(url))

    assert error["code"] == "cluster_taken"
    assert sentence == "This server is the cluster default already."
    assert not Cluster.objects.filter(name="twin").exists()


def test_a_server_that_does_not_answer_or_is_unsafe_is_not_added(
    databases: None, tmp_path: Path, second_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = tmp_path / "url"
    url.write_text("postgresql://someone:hush@/postgres?host=/nonesuch")
    sentence, error = refused("addcluster", "away", "--url-file", str(url))
    assert error["code"] == "sql_unavailable"
    assert "hush" not in sentence

    url.write_text(second_url)
    wanted = {"max_connections": ("7",)}
    monkeypatch.setattr("sqlgateway.hardening.cluster.WANTED", wanted)
    sentence, error = refused("addcluster", "unsafe", "--url-file", str(url))
    assert error["code"] == "server_unfit"
    assert any("max_connections is" in finding for finding in error["findings"])
    assert not Cluster.objects.exclude(name="default").exists()


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("default", "", "cluster_taken"),
        ("no spaces", "", "name_invalid"),
        ("second", "http://example.com", "url_invalid"),
        ("second", None, "file_unreadable"),
    ],
)
def test_a_wrong_name_or_url_is_refused(
    databases: None, tmp_path: Path, name: str, content: str | None, code: str
) -> None:
    url = tmp_path / "url"
    if content is not None:
        url.write_text(content)

    assert refused("addcluster", name, "--url-file", str(url))[1]["code"] == code


def test_an_unknown_cluster_is_refused_and_a_missing_url_is_a_wrong_call(
    databases: None,
) -> None:
    assert misused("addcluster", "second") == 2
    assert refused("draincluster", "nonesuch")[1]["code"] == "cluster_not_found"


def test_a_cluster_that_does_not_answer_leaves_the_stock_to_the_others(
    databases: None, second: Cluster
) -> None:
    stock.new_row(second).save(force_insert=True)
    second.url = AWAY
    second.save()
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            stock.refill(2)

    assert stock.size() == 2
    assert Database.objects.filter(cluster=second).count() == 1


def test_a_new_environment_is_not_placed_where_nothing_answers(
    alice: Caller, second: Cluster
) -> None:
    """Neither from the stock, nor where there is the most room."""
    stock.new_row(second).save(force_insert=True)
    assert stock.refill(1) == 1
    Cluster.objects.filter(name="default").update(capacity=10)
    answering, second.url = second.url, AWAY
    second.save()

    assert alice.value("SELECT 1") == 1

    assert alice.database.cluster.name == "default"
    assert Database.objects.filter(cluster=second, state="stock").count() == 1
    second.url = answering
    second.save()
    assert tasks.drop_retired(0) is None
    assert not RetiredDatabase.objects.exists()


def test_a_cluster_that_refuses_leaves_the_stock_to_the_others(
    databases: None, second: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock.new_row(second).save(force_insert=True)
    create = tenant_databases.create

    def refuse(database: Database) -> None:
        if database.cluster_id == second.pk:
            raise psycopg.errors.DiskFull("No space left on device.")
        create(database)

    monkeypatch.setattr(tenant_databases, "create", refuse)
    with pytest.raises(EngineUnavailable):
        stock.refill(2)

    assert stock.size() == 2


@pytest.fixture
def plain_url(second_url: str) -> Iterator[str]:
    """Return the URL of a role with CREATEDB and CREATEROLE, which is no superuser."""
    with psycopg.connect(second_url, autocommit=True) as server:
        server.execute("CREATE ROLE plain LOGIN CREATEDB CREATEROLE PASSWORD 'plain'")
        server.execute("GRANT CONNECT ON DATABASE postgres TO plain")
        parts = urlsplit(second_url)
        host = parts.netloc.rpartition("@")[2]
        yield parts._replace(netloc=f"plain:plain@{host}").geturl()
        server.execute("DROP OWNED BY plain")
        server.execute("DROP ROLE plain")


def test_a_role_that_is_no_superuser_is_named_and_its_tenants_get_503(
    databases: None, plain_url: str, tmp_path: Path
) -> None:
    caller = support.caller(support.organization("Alice's"))
    with override_settings(SQL=replace(settings.SQL, cluster_url=plain_url)):
        answer = caller.sql("SELECT 1")
        assert (answer.status, answer.body["code"]) == (503, "sql_unavailable")
        assert "superuser" not in json.dumps(answer.body)

        [row] = facts("listclusters")["clusters"]
        assert row["answers"] is False
        assert "no superuser" in row["reason"]
        [(level, message, _)] = findings("clusters", is_healthy=False)
        assert (level, "no superuser" in message) == ("failed", True)

    file = tmp_path / "plain"
    file.write_text(plain_url)
    _, error = refused("addcluster", "plain", "--url-file", str(file), "--accept-findings")
    assert error["code"] == "server_unfit"
    assert "no superuser" in error["message"]
