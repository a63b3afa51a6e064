"""How many tables an environment's database has, and its size."""

from sqlgateway.schema.catalogue import contents_of
from tests.sqlgateway.support import Caller

TABLES = (
    "CREATE TABLE notes (id int)",
    "CREATE TABLE parted (id int) PARTITION BY LIST (id)",
    "CREATE TABLE part PARTITION OF parted DEFAULT",
    "CREATE VIEW shown AS SELECT * FROM notes",
)


def test_tables_are_counted_without_views_and_partitions(alice: Caller, charlie: Caller) -> None:
    for query in TABLES:
        assert alice.post({"query": query}).status == 200
    held = contents_of(alice.scope, request_id="a-test")
    assert held["tables"] == 2
    assert (held["database_bytes"] or 0) > 1_000_000
    assert contents_of(charlie.scope, request_id="a-test")["tables"] == 0
