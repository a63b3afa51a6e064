"""The scope of tenants' rows: a context variable that every query of a tenant model obeys.

``ScopeMiddleware`` enters the scope of a request's principal, and tasks and commands that work for
a tenant enter its scope by ``within``. ``Model.objects``, the default manager of every tenant
model, returns the rows of that scope; without one it raises OutsideScope. So a forgotten filter
shows no other tenant's row, in related managers, forms and the admin as well. ``unscoped`` is for
the platform's own work. Foreign keys and cascades use Django's base manager, which is not scoped.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

from django.db import models

from common.principals import Scope

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class _Present:
    """organization_id: None for the rows of all; environment_pk: None for all environments."""

    organization_id: int | None
    environment_pk: int | None


_PRESENT: ContextVar[_Present | None] = ContextVar("scope", default=None)


class OutsideScope(RuntimeError):
    """A query of a tenant model without a scope: a programming error."""


@contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Restrict the queries of tenant models to an environment of an organization.

    May be used as a decorator, as the next two may be. Threads begin outside of any scope.
    """
    with _present(_Present(scope.organization_id, scope.environment_pk)):
        yield


@contextmanager
def within_organization(organization_id: int) -> Iterator[None]:
    """Restrict the queries of tenant models to an organization, in all of its environments."""
    with _present(_Present(organization_id, None)):
        yield


@contextmanager
def unscoped(reason: str) -> Iterator[None]:
    """Let queries of tenant models return every tenant's rows, for work of the platform itself.

    reason: why no tenant's scope can be entered.
    """
    with _present(_Present(None, None)):
        yield


@contextmanager
def outside() -> Iterator[None]:
    """Leave the scope of what ran in this thread before, as a request does when it begins."""
    with _present(None):
        yield


@contextmanager
def _present(scope: _Present | None) -> Iterator[None]:
    token = _PRESENT.set(scope)
    try:
        yield
    finally:
        _PRESENT.reset(token)


def carried(items: Iterator[ItemT]) -> Iterator[ItemT]:
    """Yield the items of a response that is sent later, each made in the present scope."""
    context = copy_context()
    end = object()

    def rest() -> Iterator[ItemT]:
        while (item := context.run(next, items, end)) is not end:
            yield item  # type: ignore[misc]  # never the end

    return rest()


class TenantManager(models.Manager[Any]):
    """Returns the rows of the present scope."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Raise OutsideScope where no scope was entered."""
        scope, rows = _PRESENT.get(), super().get_queryset()
        if scope is None:
            raise OutsideScope(
                f"{self.model.__name__}.objects was used outside of a scope: enter one by "
                "common.scoping.within, or unscoped for the platform's own work."
            )
        if scope.organization_id is None:
            return rows
        rows = rows.filter(organization_id=scope.organization_id)
        model = cast(type[TenantModel], self.model)
        if model.is_of_environment and scope.environment_pk is not None:
            return rows.filter(environment_id=scope.environment_pk)
        return rows


class TenantModel(models.Model):
    """Base of every model that belongs to a tenant (has an ``organization_id``).

    is_of_environment: its rows belong to one environment of the organization alone, so that the
    other environments' requests do not see them.
    """

    is_of_environment: ClassVar[bool] = False

    objects = TenantManager()

    class Meta:
        """Abstract."""

        abstract = True


def across_environments(model: type[TenantModel]) -> models.QuerySet[Any]:
    """Return the rows of the scope's organization, in all of its environments."""
    scope = _PRESENT.get()
    if scope is None or scope.organization_id is None:
        return model.objects.all()
    with within_organization(scope.organization_id):
        return model.objects.all()
