"""Managers that read tenant data only within a scope.

``Model.scoped.within(scope)`` reads the rows of a tenant. ``Model.objects`` raises an error, so
that its accidental use fails in the first test. ``Model.unscoped`` is for the platform's own work
and needs a reason on its line (checked by tests/rules).
"""

from typing import Any, Self, TypeVar

from django.db import models

from common.principals import Scope

ModelT = TypeVar("ModelT", bound=models.Model)


class ScopedQuerySet(models.QuerySet[ModelT]):
    """Rows of one tenant."""

    def within(self, scope: Scope) -> Self:
        """Return the rows of one organization and, if the model has one, of one environment."""
        names = {field.name for field in self.model._meta.get_fields()}
        kept = self.filter(organization_id=scope.organization_id)
        return kept.filter(environment_id=scope.environment_pk) if "environment" in names else kept

    def within_organization(self, organization_id: int) -> Self:
        """Return the rows of one organization, in all of its environments."""
        return self.filter(organization_id=organization_id)


class ScopedManager(models.Manager[ModelT]):
    """A manager that returns no rows without a scope."""

    def get_queryset(self) -> models.QuerySet[ModelT]:
        """Raise TypeError: only ``within`` and ``within_organization`` return rows."""
        raise TypeError(f"{self.model.__name__}.scoped needs a scope: .within(scope)")

    def within(self, scope: Scope) -> ScopedQuerySet[ModelT]:
        """See ``ScopedQuerySet.within``."""
        return ScopedQuerySet(self.model, using=self._db).within(scope)

    def within_organization(self, organization_id: int) -> ScopedQuerySet[ModelT]:
        """See ``ScopedQuerySet.within_organization``."""
        return ScopedQuerySet(self.model, using=self._db).within_organization(organization_id)


class RefusingManager(models.Manager[ModelT]):
    """``objects`` of a tenant model: always an error, whose text names the alternatives."""

    def get_queryset(self) -> models.QuerySet[ModelT]:
        """Raise TypeError."""
        raise TypeError(
            f"{self.model.__name__}.objects is refused: use .scoped.within(scope), "
            "or .unscoped with a reason on the line"
        )


class TenantModel(models.Model):
    """Base of every model that belongs to a tenant (has an ``organization`` key)."""

    # The default manager must work, because forms, the admin and related managers use it.
    unscoped: models.Manager[Any] = models.Manager()
    scoped: ScopedManager[Any] = ScopedManager()
    objects: RefusingManager[Any] = RefusingManager()

    class Meta:
        """Abstract; subclasses inherit the manager names."""

        abstract = True
        default_manager_name = "unscoped"
        base_manager_name = "unscoped"
