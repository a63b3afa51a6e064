"""What tests of the way out to origins share."""

import pytest

from edgecache.brain.errors import OriginForbidden
from edgecache.brain.origins.egress.guard import Guard


def forbidding(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have every name refused; give the organizations for which one was asked."""
    owners: list[int] = []

    async def resolve(_guard: Guard, *_name: object, owner: int) -> list[str]:
        owners.append(owner)
        raise OriginForbidden

    monkeypatch.setattr(Guard, "resolve", resolve)
    return owners
