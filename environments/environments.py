"""Creating, renaming and deleting environments, and dropping their data."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Lower

from common.errors import InvalidRequest
from common.scoping import unscoped
from environments.errors import (
    EnvironmentBuiltIn,
    EnvironmentNotFound,
    EnvironmentTaken,
    QuotaExceeded,
)
from environments.models import BUILT_IN, Environment, Organization
from environments.tenant_data import ALL, ENVIRONMENT_LIMIT

# Between the deletion of an environment and that of its data.
RETENTION: Final = timedelta(days=7)
SLUG: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
SLUG_RULE: Final = "1 to 63 lower-case letters, digits and dashes, no dash at either end."


@unscoped("the organization is being created")
def create_organization(name: str) -> Organization:
    """Create an organization with its built-in environments."""
    with transaction.atomic():
        organization = Organization.objects.create(name=name)
        Environment.objects.bulk_create(
            [
                Environment(organization=organization, slug=slug, name=slug, is_built_in=True)
                for slug in BUILT_IN
            ]
        )
    return organization


def find(organization_id: int, id_or_name: str) -> Environment:
    """Return an environment by its id or its name, without regard to case.

    Raises EnvironmentNotFound, also if it belongs to another organization or was deleted.
    """
    wanted = id_or_name.strip()
    # PostgreSQL's text cannot contain NUL, so no environment has such a name.
    if "\0" in wanted:
        raise EnvironmentNotFound
    found: Environment | None = _named(organization_id, wanted, Q(slug=wanted)).first()
    if found is None:
        raise EnvironmentNotFound
    return found


def by_slug(organization_id: int, slug: str) -> Environment:
    """Return an environment by its id. Raises EnvironmentNotFound, also if it was deleted."""
    # Also refuses NUL, which PostgreSQL's text cannot contain: in a path it must be a 404.
    if not SLUG.fullmatch(slug):
        raise EnvironmentNotFound
    found: Environment | None = (
        Environment.objects.filter(organization_id=organization_id)
        .filter(slug=slug, deleted_at=None)
        .first()
    )
    if found is None:
        raise EnvironmentNotFound
    return found


def create(organization_id: int, slug: str, *, name: str = "", copy_from: str = "") -> Environment:
    """Create an environment; its database is created at the first query.

    slug: 1 to 63 of ``a-z 0-9 -``, no dash at either end. name: '' for the slug. copy_from: id or
    name of another environment of the organization, whose data is copied in the background.
    Raises InvalidRequest, EnvironmentTaken, EnvironmentNotFound, EnvironmentNotReady and
    QuotaExceeded.
    """
    if not SLUG.fullmatch(slug):
        raise InvalidRequest.for_field("id", SLUG_RULE)
    with transaction.atomic():
        _lock(organization_id)
        _refuse_too_many(organization_id)
        source = find(organization_id, copy_from) if copy_from else None
        _refuse_taken(organization_id, slug)
        _refuse_taken(organization_id, name or slug)
        environment = Environment(organization_id=organization_id, slug=slug, name=name or slug)
        environment.save(force_insert=True)
        if source is not None:
            for data in ALL:
                data.environment_cloned(organization_id, source.pk, environment.pk)
    return environment


def relabel(
    organization_id: int, slug: str, *, name: str, check: Callable[[Environment], object]
) -> Environment:
    """Change an environment's name; its id never changes.

    check: called with the locked environment before the change, and may refuse it.
    Raises EnvironmentNotFound and EnvironmentTaken.
    """
    with transaction.atomic():
        _lock(organization_id)
        environment = by_slug(organization_id, slug)
        check(environment)
        _refuse_taken(organization_id, name, except_pk=environment.pk)
        environment.name = name
        environment.save(update_fields=["name"])
    return environment


def delete(organization_id: int, slug: str, *, now: datetime) -> Environment:
    """Delete an environment: access ends immediately, and its data is dropped after the retention.

    Raises EnvironmentNotFound and EnvironmentBuiltIn.
    """
    with transaction.atomic():
        _lock(organization_id)
        environment = by_slug(organization_id, slug)
        if environment.is_built_in:
            raise EnvironmentBuiltIn
        environment.deleted_at = now
        environment.save(update_fields=["deleted_at"])
        for data in ALL:
            data.environment_deleted(environment.pk)
    return environment


def close_organization(organization_id: int, *, now: datetime) -> None:
    """Delete every environment of an organization without members, including the built-in ones.

    Call inside a transaction; the data is dropped after the retention.
    """
    _lock(organization_id)
    live = Environment.objects.filter(organization_id=organization_id, deleted_at=None)
    for environment in live:
        environment.deleted_at = now
        environment.save(update_fields=["deleted_at"])
        for data in ALL:
            data.environment_deleted(environment.pk)


def expired(*, now: datetime) -> list[int]:
    """Return the keys of environments deleted longer ago than the retention."""
    cutoff = now - RETENTION

    rows = Environment.objects.filter(deleted_at__lte=cutoff)
    return list(rows.values_list("pk", flat=True))


def drop(environment_pk: int) -> None:
    """Drop a deleted environment's data, then its row; safe to repeat. Ignores existing ones."""
    rows = Environment.objects.filter(pk=environment_pk, deleted_at__isnull=False)
    environment = rows.first()
    if environment is None:
        return
    for data in ALL:
        data.environment_dropped(environment_pk)
    environment.delete()


def _refuse_too_many(organization_id: int) -> None:
    limit = ENVIRONMENT_LIMIT(organization_id)
    own = Environment.objects.filter(organization_id=organization_id, deleted_at=None)
    if own.count() >= limit:
        raise QuotaExceeded(f"The organization may have {limit} environments.")


def _lock(organization_id: int) -> None:
    # Names and ids share one namespace, which no single index can enforce, so writers are
    # serialized.
    Organization.objects.select_for_update().only("pk").get(pk=organization_id)


def _refuse_taken(organization_id: int, word: str, *, except_pk: int = 0) -> None:
    taken = _named(organization_id, word, Q(slug=Lower(Value(word))))
    if taken.exclude(pk=except_pk).exists():
        raise EnvironmentTaken


def _named(organization_id: int, name: str, or_slug: Q) -> QuerySet[Environment]:
    """Return the environments with a name or slug; names are compared as in their index."""
    rows = Environment.objects.filter(organization_id=organization_id).alias(folded=Lower("name"))
    named: QuerySet[Environment] = rows.filter(
        or_slug | Q(folded=Lower(Value(name))), deleted_at=None
    )
    return named
