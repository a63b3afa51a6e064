"""Migrations that change rows which are there: run over a ledger of an earlier release."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import IntegrityError, ProgrammingError, connections, transaction
from django.db.migrations.executor import MigrationExecutor

from tests.edgecache.billing.kills.test_kills import CHECKS
from tests.edgecache.databases import new_database

# Two consumers: Alice (1) has paid for a line and owes another one, half of which was paid later;
# Charlie (2) has used SQL with granted credits. The operator is 9. A line was not charged yet.
SEED = """
INSERT INTO billing_usageline (id, line_id, kind, used_at, organization_id, environment_pk,
        bucket_id, node_id, operator_id, quantity)
    VALUES (101, gen_random_uuid(), 'hit', '2026-10-01 10:00Z', 1, 11, 5,
            '00000000-0000-0000-0000-000000000009', 9, 10),
        (102, gen_random_uuid(), 'egress', '2026-10-02 10:00Z', 1, 11, 5,
            '00000000-0000-0000-0000-000000000009', 9, 100),
        (103, gen_random_uuid(), 'sql_statement', '2026-10-02 10:00Z', 2, 12, 0, NULL, NULL, 7),
        (104, gen_random_uuid(), 'hit', '2026-10-03 10:00Z', 2, 12, 6, NULL, NULL, 3);
INSERT INTO billing_account (id, kind, organization_id)
    VALUES (1, 'cash', NULL), (2, 'fees', NULL), (3, 'paid', 1), (4, 'debt', 1), (5, 'held', 9);
INSERT INTO billing_journal (id, kind, key) VALUES
    ('00000000-0000-0000-0000-000000000001', 'top_up', 'paid'),
    ('00000000-0000-0000-0000-000000000002', 'settlement', 'settlement:103'),
    ('00000000-0000-0000-0000-000000000003', 'late_payment', 'late');
INSERT INTO billing_entry (journal_id, account_id, amount_ucr) VALUES
    ('00000000-0000-0000-0000-000000000001', 1, -1450),
    ('00000000-0000-0000-0000-000000000001', 3, 1450),
    ('00000000-0000-0000-0000-000000000002', 3, -1000),
    ('00000000-0000-0000-0000-000000000002', 4, -900),
    ('00000000-0000-0000-0000-000000000002', 5, 700),
    ('00000000-0000-0000-0000-000000000002', 2, 1200),
    ('00000000-0000-0000-0000-000000000003', 3, -450),
    ('00000000-0000-0000-0000-000000000003', 4, 450),
    ('00000000-0000-0000-0000-000000000003', 5, 315),
    ('00000000-0000-0000-0000-000000000003', 2, -315);
INSERT INTO billing_charge (line_id, journal_id, rate_ucr, charge_ucr, granted_ucr, paid_ucr,
        unpaid_ucr, share_ppm, share_ucr)
    VALUES (101, '00000000-0000-0000-0000-000000000002', 100, 1000, 0, 1000, 0, 700000, 700),
        (102, '00000000-0000-0000-0000-000000000002', 9, 900, 0, 0, 900, 700000, 0),
        (103, '00000000-0000-0000-0000-000000000002', 0, 0, 0, 0, 0, 0, 0);
INSERT INTO billing_adjustment (charge_id, journal_id, kind, paid_ucr, unpaid_ucr, share_ucr)
    VALUES (102, '00000000-0000-0000-0000-000000000003', 'late_payment', 450, -450, 315);
INSERT INTO billing_progress (name, position) VALUES ('settle', 103);
"""
DAYS = """
    SELECT organization_id, charged_ucr FROM billing_consumerday
    UNION ALL SELECT organization_id, charged_ucr FROM billing_sqlday
    UNION ALL SELECT operator_id, share_ucr FROM billing_operatorday ORDER BY 1, 2
"""
CHARGE = """
    INSERT INTO billing_charge (line_id, organization_id, journal_id, rate_ucr, charge_ucr,
        granted_ucr, paid_ucr, unpaid_ucr, share_ppm, share_ucr)
    VALUES (104, %s, '00000000-0000-0000-0000-000000000002', 100, 300, 300, 0, 0, 0, 0)
"""


@contextmanager
def old_database() -> Iterator[None]:
    """Have a new database, with the tables of before charges named a consumer, as the default."""
    usual = connections["default"]
    with new_database() as url:
        empty = usual.copy()
        name = urlsplit(url).path.removeprefix("/")
        empty.settings_dict = empty.settings_dict | {"NAME": name}
        # Migrations of data name no database.
        connections["default"] = empty
        try:
            migrate("0013_notified_at")
            yield
        finally:
            empty.close()
            connections["default"] = usual


def migrate(name: str) -> None:
    """Run billing's migrations up to one."""
    MigrationExecutor(connections["default"]).migrate([("billing", name)])


def test_charges_that_were_there_get_the_organization_of_their_line(db: None) -> None:
    with old_database():
        run(SEED)
        migrate("0014_charges_by_organization")

        for statement in CHECKS:
            assert run(statement) == []
        charges = "SELECT line_id, organization_id FROM billing_charge ORDER BY 1"
        assert run(charges) == [(101, 1), (102, 1), (103, 2)]
        adjustments = "SELECT charge_id, organization_id FROM billing_adjustment"
        assert run(adjustments) == [(102, 1)]
        # Filling them in was no new charge.
        assert run(DAYS) == [(1, 900), (1, 1000), (2, 0), (9, 315), (9, 700)]
        # The tables are append-only again.
        for table in ("billing_charge", "billing_adjustment"):
            with pytest.raises(ProgrammingError, match="append-only"):
                run(f"UPDATE {table} SET organization_id = 3")  # noqa: S608 - names of ours
        with pytest.raises(IntegrityError, match="no line of its organization"):
            run(CHARGE, 1)
        run(CHARGE, 2)
        assert (2, 300) in run(DAYS)


def run(statement: str, *values: int) -> list[tuple[Any, ...]]:
    """Run a statement in a transaction; return its rows."""
    with transaction.atomic(), connections["default"].cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []
