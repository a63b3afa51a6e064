"""Support for the tests of egress to origins."""

import pytest

from edgecache.brain.core.errors import OriginForbidden
from edgecache.brain.origins.guard import Guard


def forbidding(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Refuse every name; return the organizations that names were resolved for."""
    owners: list[int] = []

    async def resolve(_guard: Guard, *_name: object, owner: int) -> list[str]:
        owners.append(owner)
        raise OriginForbidden

    monkeypatch.setattr(Guard, "resolve", resolve)
    return owners
