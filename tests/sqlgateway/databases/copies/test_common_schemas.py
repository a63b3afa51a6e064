"""A database that works can be cloned, moved, dumped and restored."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from audit.models import AuditEvent
from sqlgateway.databases import provisioning, stock, tasks
from sqlgateway.databases.copies import trials
from sqlgateway.models import Cluster, Database, RetiredDatabase
from tests.commands import facts, refused
from tests.sqlgateway.databases.copies import common_schemas
from tests.sqlgateway.databases.copies.common_schemas import FUNCTIONS, SCHEMAS
from tests.sqlgateway.databases.copies.test_clones import _clone, _run_jobs
from tests.sqlgateway.support import Caller, as_provisioner

pytestmark = [pytest.mark.provisions, pytest.mark.slow]


def test_a_copy_works_as_its_source(alice: Caller) -> None:
    for name, (made, _, _) in {"functions": (FUNCTIONS, "", ""), **SCHEMAS}.items():
        answer = alice.sql(made)
        assert answer.status == 200, (name, answer.body)

    staging = _clone(alice)
    _run_jobs()

    assert provisioning.state_of(staging.scope.environment_pk) == "ready"
    for name, (_, query, expected) in SCHEMAS.items():
        assert staging.value(query) == expected, name


def _dump(someone: Caller, file: Path) -> dict[str, object]:
    made: dict[str, object] = facts(
        "dumpenvironment", str(someone.scope.organization_id), "live", str(file)
    )
    return made


def test_a_dump_that_was_restored_for_trial_is_restored(
    alice: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice.sql(common_schemas.MANY).status == 200
    scratch: list[Database] = []

    def new_row(cluster: Cluster) -> Database:
        scratch.append(stock.new_row(cluster))
        return scratch[-1]

    monkeypatch.setattr(trials, "new_row", new_row)
    file = tmp_path / "live.dump"

    made = _dump(alice, file)

    assert (made["is_tried"], made["cannot_restore"]) == (True, "")
    [row] = scratch
    there = "SELECT datname FROM pg_database WHERE datname = %s"
    assert as_provisioner(there, [row.dbname]) == []
    roles = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"
    assert as_provisioner(roles, [list(row.roles.values())]) == []
    assert not RetiredDatabase.objects.exists()
    alice.sql("DROP TABLE a")
    facts("restoreenvironment", str(alice.scope.organization_id), "live", str(file))
    assert alice.value(common_schemas.MANY_QUERY) == common_schemas.MANY_VALUE


def test_a_dump_that_cannot_be_restored_says_so_when_it_is_made(
    alice: Caller, tmp_path: Path
) -> None:
    assert alice.sql(common_schemas.EXPIRED).status == 200
    file, out = tmp_path / "live.dump", io.StringIO()
    arguments = (str(alice.scope.organization_id), "live", str(file))

    with pytest.raises(CommandError) as caught:
        call_command("dumpenvironment", *arguments, "--json", stdout=out)

    assert caught.value.returncode == 4
    complaint = common_schemas.EXPIRED_COMPLAINT
    assert str(caught.value) == f"The dump cannot be restored: {complaint}."
    assert json.loads(out.getvalue())["cannot_restore"] == complaint
    event = AuditEvent.objects.get(tag="cli:database:dump")
    assert event.data["cannot_restore"] == complaint
    assert file.read_bytes().startswith(b"PGDMP")
    sentence, error = refused("restoreenvironment", *arguments)
    assert (error["code"], sentence) == ("copy_failed", f"Nothing was changed. {complaint}")
    assert alice.value("SELECT count(*) FROM b") == 1


@pytest.mark.parametrize(
    "text",
    [
        """CREATE TABLE a (i int CHECK (i > 0), t text CHECK (t IN ('a', 'b')),
            u uuid DEFAULT gen_random_uuid(), l text GENERATED ALWAYS AS (lower(t)) STORED);
        CREATE INDEX ON a (lower(t)) WHERE i > 1; INSERT INTO a (i, t) VALUES (1, 'a')""",
        "CREATE TABLE a (i int PRIMARY KEY, at timestamptz DEFAULT now())",
    ],
)
def test_a_dump_of_a_schema_that_calls_nothing_of_its_own_needs_no_trial(
    text: str, alice: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice.sql(text).status == 200
    monkeypatch.setattr(trials, "MAX_BYTES", 0)
    assert _dump(alice, tmp_path / "live.dump")["is_tried"] is True
    alice.sql("CREATE MATERIALIZED VIEW v AS SELECT 1 AS i")
    assert _dump(alice, tmp_path / "second.dump")["is_tried"] is False


def test_a_database_moves_with_functions_that_find_others(alice: Caller, second: Cluster) -> None:
    assert alice.sql(common_schemas.MANY).status == 200
    origin = alice.database.cluster
    target = Cluster.objects.exclude(pk=origin.pk).get()
    place = (str(alice.scope.organization_id), "live", "--to")

    facts("moveenvironment", *place, target.name)

    assert alice.database.cluster == target
    assert alice.value(common_schemas.MANY_QUERY) == common_schemas.MANY_VALUE
    alice.sql(common_schemas.EXPIRED)
    sentence, error = refused("moveenvironment", *place, origin.name)
    assert error["code"] == "copy_failed"
    assert sentence == f"Nothing was changed. {common_schemas.EXPIRED_COMPLAINT}"
    assert alice.database.cluster == target
    # As staff does it, the refusal is in the tenant's audit trail.
    tasks.move_database(alice.database.pk, origin.pk)
    event = AuditEvent.objects.get(tag="sql:database:move", outcome="refused")
    assert event.data["reason"] == common_schemas.EXPIRED_COMPLAINT
