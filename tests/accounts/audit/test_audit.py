"""The audit trail is append-only for every statement."""

import pytest
from django.db import DatabaseError, connection, transaction

from accounts.models import AuditEvent

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_auditevent SET tag = 'x'",
        "DELETE FROM accounts_auditevent",
        "UPDATE accounts_auditevent SET tag = 'x' WHERE false",
    ],
)
def test_events_can_be_neither_changed_nor_deleted(statement: str) -> None:
    AuditEvent.objects.create(tag="test:test:test")
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert AuditEvent.objects.get().tag == "test:test:test"
