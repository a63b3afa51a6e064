"""The router refuses a viewset whose rows do not begin with a scope."""

from typing import Any

import pytest
from django.db.models import QuerySet

from common.api.viewsets import ListAction, PlatformViewSet, RetrieveAction, Router
from environments.models import Environment, Organization


class Listed(ListAction):
    """A list of nothing in particular."""


class Retrieved(RetrieveAction):
    """One of nothing in particular."""


class OfAllTenants(PlatformViewSet):
    """Rows without a scope."""

    queryset = Organization.objects.all()


class Scoped(ListAction):
    """No rows, of one tenant."""

    def get_queryset(self) -> QuerySet[Any]:
        return Environment.objects.none()


class WithoutRows(PlatformViewSet):
    """Verbs."""


@pytest.mark.parametrize("viewset", [Listed, Retrieved, OfAllTenants])
def test_a_viewset_without_a_scope_is_refused(viewset: type[PlatformViewSet]) -> None:
    with pytest.raises(TypeError, match=f"{viewset.__name__} needs a get_queryset"):
        Router().register("v1/things", viewset)


@pytest.mark.parametrize("viewset", [Scoped, WithoutRows])
def test_other_viewsets_are_routed(viewset: type[PlatformViewSet]) -> None:
    router = Router()
    router.register("v1/things", viewset)
    assert [found[1] for found in router.registry] == [viewset]
