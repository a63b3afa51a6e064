"""Saved queries, which an organization's members share in all of its environments."""

from collections.abc import Callable
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from audit import trail
from common.principals import PlatformRequest, Principal
from environments.models import Organization
from sqlgateway.audit_tags import SqlTag
from sqlgateway.errors import (
    SavedQueryChanged,
    SavedQueryNotFound,
    SavedQueryTaken,
    TooManySavedQueries,
)
from sqlgateway.models import SavedQuery

MAX_SAVED: Final = 500
MAX_TEXT: Final = 100_000


def of_organization(organization_id: int) -> QuerySet[SavedQuery]:
    """Return an organization's saved queries."""
    rows: QuerySet[SavedQuery] = SavedQuery.objects.filter(organization_id=organization_id)
    return rows


def save(request: PlatformRequest, principal: Principal, *, name: str, text: str) -> SavedQuery:
    """Add a saved query. Raises SavedQueryTaken, TooManySavedQueries (409)."""
    organization_id = principal.organization_id
    saved = SavedQuery(
        organization_id=organization_id, name=name, text=text, updated_by=principal.audit_name
    )
    with transaction.atomic():
        # The lock serializes the requests of an organization, so that the count is right.
        Organization.objects.select_for_update().only("pk").get(pk=organization_id)
        if of_organization(organization_id).count() >= MAX_SAVED:
            raise TooManySavedQueries(f"It may have {MAX_SAVED}. Delete one first.")
        try:
            with transaction.atomic():
                saved.save(force_insert=True)
        except IntegrityError as exc:
            raise SavedQueryTaken from exc
        trail.record_request(request, SqlTag.QUERY_SAVE, query_id=str(saved.pk), name=name)
    return saved


def change(
    request: PlatformRequest,
    principal: Principal,
    saved: SavedQuery,
    *,
    version: int | None,
    check: Callable[[SavedQuery], object],
    **to: str,
) -> SavedQuery:
    """Change the ``name`` or the ``text``, if ``version`` is the present version.

    version: None compares none. check: called with the locked row, and may refuse the change.
    Raises SavedQueryNotFound (404) if it was deleted, SavedQueryTaken, SavedQueryChanged (409).
    """
    rows = of_organization(principal.organization_id)
    with transaction.atomic():
        locked = rows.select_for_update().filter(pk=saved.pk).first()
        if locked is None:
            raise SavedQueryNotFound
        check(locked)
        if version is not None and locked.version != version:
            raise SavedQueryChanged(
                f"{locked.updated_by} has changed it.",
                extra={"version": locked.version, "updated_by": locked.updated_by},
            )
        changes = {**to, "version": locked.version + 1, "updated_by": principal.audit_name}
        try:
            with transaction.atomic():
                rows.filter(pk=saved.pk).update(**changes, updated_at=timezone.now())
        except IntegrityError as exc:
            raise SavedQueryTaken from exc
        trail.record_request(
            request, SqlTag.QUERY_UPDATE, query_id=str(saved.pk), name=to.get("name", locked.name)
        )
    return rows.get(pk=saved.pk)


def delete(request: PlatformRequest, saved: SavedQuery) -> None:
    """Delete a saved query."""
    query_id = str(saved.pk)
    with transaction.atomic():
        saved.delete()
        trail.record_request(request, SqlTag.QUERY_DELETE, query_id=query_id, name=saved.name)
