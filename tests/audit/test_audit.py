"""The audit trail is append-only for every statement, and what it could not hold is logged."""

from typing import NoReturn

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from audit import trail
from audit.models import AuditEvent
from audit.tags import TrailTag


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_auditevent SET tag = 'x'",
        "DELETE FROM audit_auditevent",
        "UPDATE audit_auditevent SET tag = 'x' WHERE false",
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


@pytest.mark.django_db(transaction=True)
def test_an_event_that_a_lost_database_does_not_take_is_logged_unless_its_cause_is_undone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_arguments: object, **_options: object) -> NoReturn:
        raise OperationalError

    monkeypatch.setattr(AuditEvent, "save", lost)
    with pytest.raises(OperationalError):
        trail.add(None, TrailTag.PERMISSION_DENY, organization_id=7, data={"origin": "pictures"})
    assert "audit_event_not_written" in caplog.text
    assert "pictures" in caplog.text
    caplog.clear()
    with pytest.raises(OperationalError), transaction.atomic():
        trail.add(None, TrailTag.PERMISSION_DENY, organization_id=7)
    assert caplog.text == ""
