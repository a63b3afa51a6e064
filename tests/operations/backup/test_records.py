"""Prometheus learns how old the last backup and the last drill are."""

import datetime
from typing import Any

import pytest
import time_machine
from django.db import connection

from audit import trail
from operations.audit_tags import OperationTag
from operations.backup.records import last_drill
from tests.scrape import scrape

pytestmark = pytest.mark.django_db
BACKUP = "zonal_backup_timestamp_seconds"
MISSING = "zonal_backup_missing_environments"
DRILL = "zonal_backup_drill_timestamp_seconds"
THEN = datetime.datetime(2026, 11, 20, 3, tzinfo=datetime.UTC)


def record(
    tag: OperationTag, at: datetime.datetime, kind: str = "platform", failed: int = 0
) -> None:
    """Add an event as the command does."""
    with time_machine.travel(at, tick=False):
        trail.add(None, tag, data={"kind": kind, "failed": failed})


def test_never_is_zero() -> None:
    seen = scrape()
    assert {BACKUP, MISSING, DRILL} <= seen.names
    assert [seen.value(name) for name in (BACKUP, MISSING, DRILL)] == [0, 0, 0]


def test_the_newest_of_everything_counts() -> None:
    hour = datetime.timedelta(hours=1)
    record(OperationTag.CLI_BACKUP_CREATE, THEN, failed=2)
    record(OperationTag.CLI_BACKUP_CREATE, THEN - hour)
    record(OperationTag.CLI_BACKUP_CREATE, THEN + hour, kind="environment")
    record(OperationTag.CLI_BACKUP_DRILL, THEN - 2 * hour)

    seen = scrape()

    assert seen.value(BACKUP) == THEN.timestamp()
    assert seen.value(MISSING) == 2
    assert seen.value(DRILL) == (THEN - 2 * hour).timestamp()


def test_a_long_trail_is_not_read_through() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        query, values = _sql_of_last_drill()
        cursor.execute(f"EXPLAIN {query}", values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "audit_of_backups" in plan


def _sql_of_last_drill() -> tuple[str, Any]:
    asked: list[tuple[str, Any]] = []

    def watch(execute: object, sql: str, params: Any, *rest: object) -> object:
        asked.append((sql, params))
        return execute(sql, params, *rest)  # type: ignore[operator]  # Django's own

    with connection.execute_wrapper(watch):
        assert last_drill() is None
    return asked[0]
