"""Deletion of an organization: requested with its name, carried out after a delay, irreversible.

During the delay nothing changes; every admin is notified, and any of them can cancel. Then its
members lose access immediately, and its data is deleted environment by environment. The
organization's row stays without its name, because the append-only ledger refers to its number, as
does the audit trail during its retention.
"""

from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models.fields.reverse_related import ForeignObjectRel

from accounts import account_lifecycle
from accounts.models import User
from accounts.organization_admins import notify_admins
from accounts.sessions import sessions
from audit import trail
from common import rate_limits
from common.errors import FieldError
from common.locks import AlreadyLocked, exclusive
from environments import environments, tenant_data
from environments.models import Environment, Organization
from organizations import exports
from organizations.audit_tags import OrganizationTag
from organizations.errors import (
    DeletionBegan,
    DeletionBlocked,
    DeletionNotFound,
    DeletionRequested,
    NameMismatch,
    RequestedTooOften,
)
from outbox.models import Delivery

DAY: Final = timedelta(days=1)
REQUESTS_PER_DAY: Final = 5

log = structlog.get_logger(__name__)


def check_rate_limit(kind: str, organization_id: int, *, now: datetime) -> None:
    """Count one request that mails all admins, outside a transaction that may be rolled back.

    Raises RequestedTooOften (429).
    """
    rate_limits.enforce(
        kind,
        str(organization_id),
        limit=REQUESTS_PER_DAY,
        window=DAY,
        error=RequestedTooOften,
        now=now,
    )


def request(organization_id: int, *, name: str, by: str, now: datetime) -> Organization:
    """Request the deletion of an organization after the delay; every admin gets a mail.

    name: the organization's name, typed as a confirmation. Call inside a transaction.
    Raises NameMismatch, DeletionRequested, DeletionBlocked.
    """
    row = _locked(organization_id)
    _refuse_other_name(row, name)
    if row.deletion_due_at is not None:
        raise DeletionRequested
    refuse_blocked(organization_id)
    row.deletion_requested_at, row.deletion_requested_by = now, by
    row.deletion_due_at = now + timedelta(days=settings.ORGANIZATIONS.deletion_days)
    _save(row)
    due_at = f"{row.deletion_due_at:%Y-%m-%d %H:%M} UTC"
    notify_admins(
        organization_id,
        "organization_deletion_requested",
        organization=row.name,
        due_at=due_at,
        by=by,
    )
    return row


def request_at_once(organization_id: int, *, name: str, by: str, now: datetime) -> Organization:
    """Request the deletion without the delay, also if it was requested before.

    Call inside a transaction. Raises NameMismatch, DeletionBlocked.
    """
    row = _locked(organization_id)
    if row.deletion_due_at is None:
        row = request(organization_id, name=name, by=by, now=now)
    else:
        _refuse_other_name(row, name)
        if row.deletion_began_at is None:
            refuse_blocked(organization_id)
    row.deletion_due_at = now
    _save(row)
    return row


def cancel(organization_id: int, *, by: str) -> Organization:
    """Cancel a requested deletion. Call inside a transaction.

    Raises DeletionNotFound, DeletionBegan.
    """
    row = _locked(organization_id)
    if row.deletion_due_at is None:
        raise DeletionNotFound
    if row.deletion_began_at is not None:
        raise DeletionBegan
    row.deletion_requested_at = row.deletion_due_at = None
    row.deletion_requested_by = ""
    _save(row)
    notify_admins(organization_id, "organization_deletion_cancelled", organization=row.name, by=by)
    return row


def refuse_blocked(organization_id: int) -> None:
    """Raise DeletionBlocked if something has to be done first; its detail says what."""
    found = [
        sentence for data in tenant_data.ALL for sentence in data.obstacles_of(organization_id)
    ]
    if found:
        raise DeletionBlocked(" ".join(found))


def due(*, now: datetime) -> list[int]:
    """Return the organizations whose delay is over."""
    rows = Organization.objects.filter(deletion_due_at__lte=now, deleted_at=None)
    return list(rows.values_list("pk", flat=True))


def carry_out(organization_id: int, *, now: datetime) -> bool:
    """Delete an organization that is due; True if it is deleted. Safe to repeat at any point.

    A deletion that is blocked, or that another process carries out, is tried again later.
    Raises PlatformError while a database server or the edge cache does not answer.
    """
    try:
        with exclusive(f"organization deletion {organization_id}"):
            return _begin(organization_id, now=now) and _finish(organization_id, now=now)
    except AlreadyLocked:
        log.info("organization_deletion_under_way", organization=organization_id)
    except DeletionBlocked as exc:
        log.warning("organization_not_deleted", organization=organization_id, reason=exc.detail)
    return False


def _finish(organization_id: int, *, now: datetime) -> bool:
    """Delete the data of a closed organization; return True."""
    for environment in Environment.objects.filter(organization_id=organization_id):
        environments.drop(environment.pk)
    for data in tenant_data.ALL:
        data.organization_erased(organization_id)
    _erase(organization_id, now=now)
    log.info("organization_deleted", organization=organization_id)
    return True


def _begin(organization_id: int, *, now: datetime) -> bool:
    """Close an organization that is due; False if the deletion was cancelled or is complete."""
    with transaction.atomic():
        row = _locked(organization_id)
        if row.deleted_at is not None or row.deletion_due_at is None or row.deletion_due_at > now:
            return False
        if row.deletion_began_at is None:
            refuse_blocked(organization_id)
            row.deletion_began_at = now
            _save(row)
            notify_admins(organization_id, "organization_deleted", organization=row.name)
            trail.add(
                None,
                OrganizationTag.SYSTEM_ORGANIZATION_DELETE,
                organization_id=organization_id,
                data={"requested_by": row.deletion_requested_by},
            )
        # Repeated after each failure: a user may have joined by a provider's membership.
        for member in User.objects.filter(organization_id=organization_id, is_active=True):
            member.is_active = False
            member.save(update_fields=["is_active"])
            sessions.end_all_of_user(member.pk, reason="disabled", now=now)
            account_lifecycle.run_hooks("trust_ended", member.pk)
        environments.close_organization(organization_id, now=now)
    return True


def _erase(organization_id: int, *, now: datetime) -> None:
    """Delete the members, and every other row that belongs to the organization."""
    for user_id in list(
        User.objects.filter(organization_id=organization_id).values_list("pk", flat=True)
    ):
        with transaction.atomic():
            account_lifecycle.run_hooks("user_removed", user_id)
            User.objects.filter(organization_id=organization_id, pk=user_id).delete()
    exports.remove_all(organization_id)
    with transaction.atomic():
        row = _locked(organization_id)
        for model, field in owned():
            # Unsent mails notify the admins of this deletion; housekeeping deletes them later.
            if model is not Delivery:
                model._meta.base_manager.filter(**{field: row}).delete()
        row.name = row.deletion_requested_by = ""
        row.deleted_at = now
        row.save(update_fields=["name", "deletion_requested_by", "deleted_at"])


def owned() -> list[tuple[Any, str]]:
    """Return every model that refers to an organization, with the referring field."""
    # Relations with `related_name="+"` are hidden.
    fields = Organization._meta.get_fields(include_hidden=True)
    relations = [each for each in fields if isinstance(each, ForeignObjectRel)]
    return [(each.related_model, each.field.name) for each in relations]


def _refuse_other_name(row: Organization, name: str) -> None:
    if name.strip() != row.name:
        wrong = FieldError("name", NameMismatch.code, "This is not the organization's name.")
        raise NameMismatch(fields=(wrong,))


def _locked(organization_id: int) -> Organization:
    # The same lock as for members and environments: it serializes changes of the organization.
    return Organization.objects.select_for_update().get(pk=organization_id)


def _save(row: Organization) -> None:
    row.save(
        update_fields=[
            "deletion_requested_at",
            "deletion_requested_by",
            "deletion_due_at",
            "deletion_began_at",
        ]
    )
