"""After a point-in-time recovery of PostgreSQL: delete the rows that a restore would omit."""

from django.conf import settings
from django.db import connections, transaction

from audit import trail
from operations.audit_tags import OperationTag
from operations.backup import control, restore_checks, tables


def void() -> int:
    """Delete credentials and queued messages, and hold payouts; return the number of payouts.

    Raises CommandRefused while processes run.
    """
    for alias in settings.DATABASES:
        with control.connect(alias) as server:
            restore_checks.refuse_running(server)
    for alias in settings.DATABASES:
        database = connections[alias]
        present = set(database.introspection.table_names())
        table_names = [name for name in tables.names_of(tables.OPENING) if name in present]
        with transaction.atomic(using=alias), database.cursor() as cursor:
            cursor.execute(f"TRUNCATE {', '.join(table_names)}")
    with transaction.atomic():
        trail.add(None, OperationTag.CLI_BACKUP_RESTORE, data={"kind": "recovery"})
        return hold_payouts()


def hold_payouts() -> int:
    """Hold all payouts until they are reconciled; return how many are being sent."""
    if not settings.HAS_CACHE:
        return 0
    from billing.payouts import reconciliation  # noqa: PLC0415 - only with the feature

    return reconciliation.begin()
