"""How many SQL requests of an organization may run and wait concurrently."""

import time
from collections import OrderedDict
from typing import NamedTuple

from django.conf import settings

from platform_site.lib.principals import Scope
from sqlgateway.provisioning.placements import CACHE


class Limits(NamedTuple):
    """Limits of concurrently running requests.

    organization, environment: in this process. beside_others: in all processes, while other
    organizations are active.
    """

    organization: int
    environment: int
    beside_others: int | None


def limits_of(scope: Scope) -> Limits:
    """Return the organization's own limit, used for every field, or the default limits."""
    own = CACHE.statements(scope.environment_pk)
    if own is not None:
        return Limits(own, own, None)
    shared = settings.SQL
    return Limits(
        shared.running_per_organization,
        shared.running_per_environment,
        beside_others(),
    )


def beside_others() -> int:
    """Return the default of ``Limits.beside_others``."""
    return settings.SQL.running_beside_others or max(1, settings.WEB_WORKERS // 2)


class ExpiringSet:
    """Organization ids that are kept for a fixed time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Until when (time.monotonic()), the next to end first.
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
    """True if an organization may take another slot. own: those that it holds.

    To take a second slot, more than a quarter of all slots must be free; to take a third, more than
    half. A first slot is granted while any is free.
    """
    return own * max(of // 4, 1) < of - taken
