"""Limits of the SQL requests that run and wait concurrently; running_counts.py applies them."""

import time
from collections import OrderedDict
from typing import NamedTuple

from django.conf import settings

from common.principals import Scope
from sqlgateway.clusters.placements import PLACEMENT_CACHE


class AdmissionLimits(NamedTuple):
    """Limits of concurrently running requests.

    organization: of an organization, in this process.
    environment: of an environment, in this process.
    beside_others: of an organization in all processes, while other organizations are active.
    """

    organization: int
    environment: int
    beside_others: int | None


def limits_of(scope: Scope) -> AdmissionLimits:
    """Return the limits of a scope.

    An organization's own limit replaces all three: the same number for the organization and for
    each environment, and no other limit beside other organizations.
    """
    own = PLACEMENT_CACHE.statements(scope.environment_pk)
    if own is not None:
        return AdmissionLimits(own, own, None)
    shared = settings.SQL
    return AdmissionLimits(
        shared.running_per_organization,
        shared.running_per_environment,
        beside_others(),
    )


def beside_others() -> int:
    """Return the default of ``AdmissionLimits.beside_others``."""
    return settings.SQL.running_beside_others or max(1, settings.WEB_WORKERS // 2)


class ExpiringSet:
    """Organization ids that are kept for a fixed time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # The end of each (time.monotonic()), earliest first.
        self._until: OrderedDict[int, float] = OrderedDict()

    def add(self, organization_id: int) -> None:
        """Keep an organization's id from now on."""
        now = time.monotonic()
        self._until[organization_id] = now + self._seconds
        self._until.move_to_end(organization_id)
        while next(iter(self._until.values())) <= now:
            self._until.popitem(last=False)

    def __contains__(self, organization_id: int) -> bool:
        return self._until.get(organization_id, 0.0) > time.monotonic()

    def discard(self, organization_id: int) -> None:
        """Remove an organization's id."""
        self._until.pop(organization_id, None)


def is_fair(own: int, *, taken: int, of: int) -> bool:
    """True if an organization that holds ``own`` slots may take another one.

    The first requires one free slot; the second requires more than a quarter of all slots to be
    free; the third, more than half.
    """
    return own * max(of // 4, 1) < of - taken
