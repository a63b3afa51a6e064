"""An environment over its disk quota may only shrink, whatever its admin tries."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from audit.models import AuditEvent
from environments import environments
from environments.errors import QuotaExceeded
from sqlgateway.clusters import placements
from sqlgateway.clusters.servers import address_of, administer
from sqlgateway.databases import quotas, tasks
from sqlgateway.hardening import quota_guard
from sqlgateway.models import OrganizationQuota
from sqlgateway.pg.pool import CONNECTION_POOL
from sqlgateway.run import admission, gateway
from sqlgateway.run.admission import ADMISSION
from tests.commands import facts, help_of, misused, refused
from tests.outbox.webhooks.support import emitted, subscribe
from tests.sqlgateway.support import Caller

pytestmark = [pytest.mark.provisions, pytest.mark.slow]

# Each of them would let the database grow, or take the guard away.
GROWTH = (
    "INSERT INTO t VALUES (2)",
    "UPDATE t SET id = 3",
    "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
    "MERGE INTO t USING (VALUES (1)) AS v (id) ON false WHEN NOT MATCHED THEN INSERT VALUES (9)",
    "INSERT INTO v VALUES (2)",
    "INSERT INTO parts VALUES (1)",
    "INSERT INTO parts_1 VALUES (1)",
    "WITH added AS (INSERT INTO t VALUES (2) RETURNING id) SELECT * FROM added",
    "SELECT fill()",
    "DO $$ BEGIN INSERT INTO t VALUES (2); END $$",
    "CREATE TABLE bigger AS SELECT g FROM generate_series(1, 1000) g",
    "SELECT 1 AS id INTO bigger",
    "CREATE TABLE bigger (id int)",
    "CREATE TEMP TABLE bigger (id int)",
    "CREATE MATERIALIZED VIEW bigger AS SELECT 1 AS id",
    "REFRESH MATERIALIZED VIEW m",
    "CREATE INDEX ON t (id)",
    "ALTER TABLE t ADD COLUMN more text DEFAULT 'more'",
    "ALTER TABLE t DISABLE TRIGGER ALL",
    "ALTER TABLE t DISABLE TRIGGER zonal_over_quota",
    "DROP TRIGGER zonal_over_quota ON t",
    "ALTER TRIGGER zonal_over_quota ON t RENAME TO other",
    "CREATE OR REPLACE FUNCTION fill() RETURNS void LANGUAGE sql AS 'SELECT'",
    "SET search_path = mine, pg_catalog; CREATE TABLE public.bigger (id int)",
)
# PostgreSQL itself refuses these.
FORBIDDEN = (
    "DROP EVENT TRIGGER zonal_over_quota",
    "SET session_replication_role = replica; INSERT INTO t VALUES (2)",
    "ALTER EVENT TRIGGER zonal_over_quota DISABLE",
    "DROP FUNCTION pg_catalog.zonal_over_quota() CASCADE",
    "DROP FUNCTION pg_catalog.zonal_over_quota_ddl() CASCADE",
    "CREATE OR REPLACE FUNCTION pg_catalog.zonal_over_quota() RETURNS int LANGUAGE sql AS 'SELECT'",
)


def _fill(someone: Caller) -> None:
    answer = someone.sql(
        """
        CREATE TABLE t (id int);
        INSERT INTO t VALUES (1);
        CREATE VIEW v AS SELECT id FROM t;
        CREATE MATERIALIZED VIEW m AS SELECT id FROM t;
        CREATE TABLE parts (id int) PARTITION BY LIST (id);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
        CREATE TABLE gone (id int);
        CREATE SCHEMA mine;
        CREATE FUNCTION mine.never(text, text) RETURNS bool LANGUAGE sql AS 'SELECT false';
        CREATE OPERATOR mine.= (LEFTARG = text, RIGHTARG = text, FUNCTION = mine.never);
        CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS 'INSERT INTO t VALUES (2)';
        """
    )
    assert answer.status == 200, answer.body


def _limit(someone: Caller, disk_bytes: str) -> None:
    facts("setquota", str(someone.scope.organization_id), "--disk-bytes", disk_bytes)
    tasks.measure_disk(0)


def test_a_quota_that_is_reached_is_one_event(alice: Caller) -> None:
    subscribe(alice.scope.organization_id, "quota.reached")
    alice.value("SELECT 1")
    _fill(alice)
    for _ in range(2):
        _limit(alice, "1000000")
    ((_, data),) = emitted()
    assert (data["quota"], data["environment"]) == ("disk", "live")
    assert data["size_bytes"] > data["limit_bytes"] == 1000000


def test_a_database_over_its_quota_only_shrinks_until_it_is_below(alice: Caller) -> None:
    alice.value("SELECT 1")
    _fill(alice)
    _limit(alice, "1000000")

    for statement in GROWTH:
        answer = alice.sql(statement)
        assert (answer.status, answer.code) == (403, "quota_exceeded"), (statement, answer.body)
    for statement in FORBIDDEN:
        assert alice.sql(statement).status in {400, 403}, statement
    assert alice.be("operator").sql("INSERT INTO t VALUES (2)").code == "quota_exceeded"
    assert alice.be("reader").value("SELECT count(*) FROM t") == 1
    for statement in ("DELETE FROM t", "TRUNCATE parts", "DROP TABLE gone", "VACUUM FULL t"):
        assert alice.sql(statement).status == 200, statement
    states = [alice.database.is_over_quota]

    _limit(alice, "default")

    assert [*states, alice.database.is_over_quota] == [True, False]
    assert alice.sql("INSERT INTO t VALUES (2); CREATE INDEX ON t (id)").status == 200
    assert alice.value("SELECT count(*) FROM pg_trigger") == 0


def test_a_delete_with_a_key_works_over_the_quota_and_its_records_are_no_way_around_it(
    alice: Caller,
) -> None:
    alice.sql("CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2), (3)")
    delete = {"query": "DELETE FROM t WHERE id = (SELECT min(id) FROM t) RETURNING id"}
    keep = (
        "INSERT INTO zonal.idempotency (key, record) SELECT sha256(g::text::bytea),"
        " (SELECT string_agg(sha256((g * h)::text::bytea), '') FROM generate_series(1, $1::int) h)"
        " FROM generate_series(1, $2::int) g"
    )
    for number in range(2):
        # The first one makes the table, the second meets its guard.
        _limit(alice, "1000000")
        answers = [alice.post(delete, Idempotency_Key=f"key-{number}") for _ in range(2)]
        assert [answer.rows for answer in answers] == [[{"id": number + 1}]] * 2

    for statement, params in (
        (keep, [1_000, 10_000]),
        (keep, [600_000, 1]),
        ("UPDATE zonal.idempotency SET record = decode(repeat('00', 20000000), 'hex')", []),
    ):
        answer = alice.be("operator").sql(statement, params)
        assert (answer.status, answer.code) == (403, "quota_exceeded"), answer.body
    assert alice.post(delete, Idempotency_Key="key-3").status == 200
    _limit(alice, "default")


def test_a_schema_with_the_platforms_name_is_no_way_around_the_quota(alice: Caller) -> None:
    alice.sql("SELECT 1")
    with administer(address_of(alice.database.cluster), alice.database.dbname) as inside:
        # As in a database of before, which had none until it was needed.
        inside.execute("DROP SCHEMA zonal")
    made = alice.sql("CREATE SCHEMA zonal; CREATE TABLE zonal.mine (v text)")
    _limit(alice, "1000000")

    answer = alice.sql("INSERT INTO zonal.mine VALUES ('more')")

    assert (made.status, answer.status, answer.code) == (200, 403, "quota_exceeded")
    _limit(alice, "default")


def test_a_tenant_cannot_make_a_table_look_guarded(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    _limit(alice, "1000000")
    _limit(alice, "default")

    answer = alice.sql(
        "CREATE TRIGGER mine BEFORE DELETE ON t EXECUTE FUNCTION pg_catalog.zonal_over_quota();"
        " ALTER TABLE t ENABLE ALWAYS TRIGGER mine"
    )

    assert (answer.status, answer.body["sqlstate"]) == (403, "42501")


def test_a_table_that_was_made_before_the_guard_came_is_guarded_by_the_next_measurement(
    alice: Caller,
) -> None:
    alice.sql("CREATE TABLE t (id int)")
    _limit(alice, "1000000")

    with administer(address_of(alice.database.cluster), alice.database.dbname) as inside:
        inside.execute("DROP TRIGGER zonal_over_quota ON public.t")
    assert alice.sql("INSERT INTO t VALUES (1)").status == 200
    quotas.measure(alice.database, now=timezone.now())

    assert alice.sql("INSERT INTO t VALUES (1)").code == "quota_exceeded"
    quotas.release(alice.database)


def test_an_open_transaction_does_not_keep_its_tables_from_being_guarded(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    writer = gateway.connect(alice.scope, "admin")
    try:
        writer.run(b"BEGIN")
        writer.run(b"INSERT INTO t VALUES (1)")
        with patch.object(quota_guard, "LOCK_TIMEOUT", "SET lock_timeout = '20ms'"):
            _limit(alice, "1000000")

        assert alice.sql("INSERT INTO t VALUES (1)").code == "quota_exceeded"
        assert alice.value("SELECT count(*) FROM t") == 0
    finally:
        CONNECTION_POOL.discard(writer)
    quotas.release(alice.database)


def test_locks_of_one_tenant_delay_the_measurement_for_a_limited_time(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int); CREATE TABLE u (id int)")
    with patch.object(quota_guard, "BUDGET_S", -1.0):
        _limit(alice, "1000000")
    # No table was guarded, but none can be added either.
    assert alice.sql("CREATE TABLE w (id int)").code == "quota_exceeded"
    assert alice.sql("INSERT INTO t VALUES (1)").status == 200
    quotas.release(alice.database)


def test_an_environment_over_its_quota_is_not_cloned(alice: Caller) -> None:
    alice.sql("CREATE TABLE t (id int)")
    _limit(alice, "1000000")

    with pytest.raises(QuotaExceeded):
        environments.create(alice.scope.organization_id, "staging", copy_from="live")
    quotas.release(alice.database)


def test_an_organization_has_as_many_environments_as_its_quota_says(
    alice: Caller, charlie: Caller
) -> None:
    answer = facts("setquota", str(alice.scope.organization_id), "--environments", "3")
    assert answer["environments"] == 3

    environments.create(alice.scope.organization_id, "third")
    with pytest.raises(QuotaExceeded):
        environments.create(alice.scope.organization_id, "fourth")
    environments.create(charlie.scope.organization_id, "third")
    assert OrganizationQuota.objects.count() == 1


def test_an_organization_runs_as_many_statements_at_once_as_its_quota_says(
    alice: Caller, charlie: Caller
) -> None:
    organization_id = str(alice.scope.organization_id)
    facts("setquota", organization_id, "--statements", "1")
    placements.PLACEMENT_CACHE.clear()
    limits = replace(settings.SQL, running_per_organization=2)
    with override_settings(SQL=limits), patch.object(admission, "QUEUE_WAIT_S", 0.001):
        alice.sql("SELECT 1")
        with ADMISSION.slot(alice.scope):
            assert alice.sql("SELECT 1").status == 429
            assert charlie.sql("SELECT 1").status == 200

        # More than an environment of others may.
        facts("setquota", organization_id, "--statements", "2")
        placements.PLACEMENT_CACHE.clear()
        alice.sql("SELECT 1")
        with ADMISSION.slot(alice.scope):
            assert alice.sql("SELECT 1").status == 200
            assert charlie.sql("SELECT 1").status == 200

        facts("setquota", organization_id, "--statements", "0")
        placements.PLACEMENT_CACHE.clear()
        alice.sql("SELECT 1")
        assert alice.sql("SELECT 1").status == 429


def test_a_statement_runs_no_longer_than_its_organizations_quota_says(
    alice: Caller, charlie: Caller
) -> None:
    organization_id = str(alice.scope.organization_id)
    slow = "SELECT pg_sleep(0.3)"
    # Connections that are kept were opened before the limit.
    assert [caller.sql(slow).status for caller in (alice, charlie)] == [200, 200]
    assert facts("setquota", organization_id, "--timeout-ms", "50")["timeout_ms"] == 50
    placements.PLACEMENT_CACHE.clear()

    assert alice.sql(slow).code == "query_timeout"
    assert charlie.sql(slow).status == 200
    facts("setquota", organization_id, "--timeout-ms", "default")
    placements.PLACEMENT_CACHE.clear()
    assert alice.sql(slow).status == 200


def test_each_change_of_a_quota_is_recorded_and_nothing_else(alice: Caller) -> None:
    organization_id = alice.scope.organization_id

    def change(*arguments: str) -> None:
        facts("setquota", str(organization_id), *arguments)

    change("--statements", "default")
    assert not OrganizationQuota.objects.exists()
    for _ in range(2):
        change("--max-rows", "7", "--statements", "default")
    change()
    change("--max-rows", "8", "--dry-run")
    change("--max-rows", "default", "--timeout-ms", "900")

    events = AuditEvent.objects.filter(tag="cli:quota:set").order_by("id")
    assert {(event.organization_id, event.actor) for event in events} == {
        (organization_id, "command")
    }
    assert [event.data["changed"] for event in events] == [
        {"max_rows": {"from": None, "to": 7}},
        {"max_rows": {"from": 7, "to": None}, "timeout_ms": {"from": None, "to": 900}},
    ]


def test_a_quota_of_nobody_is_refused(alice: Caller) -> None:
    assert refused("setquota", "0")[1]["code"] == "organization_not_found"
    assert "ZSQL_DISK_LIMIT_BYTES" in help_of("setquota")


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--environments", "-1", "-1 is below 0, the least that it may be."),
        ("--environments", str(2**51), f"{2**51} is above {2**51 - 1}, the most that it may be."),
        ("--statements", "10001", "10001 is above 10000, the most that it may be."),
        ("--timeout-ms", "30001", "30001 is above 30000, which ZSQL_TIMEOUT_MS allows at most."),
        ("--timeout-ms", "0", "0 is below 1, the least that it may be."),
        ("--timeout-ms", "30s", "'30s' is neither a whole number nor 'default'."),
        ("--disk-bytes", "", "'' is neither a whole number nor 'default'."),
        (
            "--disk-bytes",
            "x" * 99,
            f"'{'x' * 12}...{'x' * 13}' is neither a whole number nor 'default'.",
        ),
    ],
)
def test_a_value_that_no_limit_can_have_is_refused_with_the_option_and_the_limit(
    capsys: pytest.CaptureFixture[str],
    alice: Caller,
    option: str,
    value: str,
    sentence: str,
) -> None:
    organization_id = str(alice.scope.organization_id)

    assert misused("setquota", organization_id, f"{option}={value}") == 2

    assert f"error: argument {option}: {sentence}\n" in capsys.readouterr().err
    assert not OrganizationQuota.objects.exists()
