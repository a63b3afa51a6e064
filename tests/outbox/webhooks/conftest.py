"""Fixtures of webhooks."""

from collections.abc import Iterator

import pytest

from tests.outbox.webhooks.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a server that receives webhooks."""
    with receiving() as running:
        yield running
