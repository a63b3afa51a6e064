"""A change of a node's state is sent to its operator, once."""

from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from edgecache.api import client
from edgecache.api.nodes import record_state_changes
from tests.outbox.webhooks.support import emitted, subscribe

pytestmark = pytest.mark.django_db
NODE = "01a2048d-6b6c-7296-8654-b75268988c34"


def test_a_change_of_a_nodes_state_is_an_event_of_its_operator(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes: list[dict[str, Any]] = []
    monkeypatch.setattr(client, "call", lambda *_, **__: {"nodes": nodes})
    endpoint = subscribe(alice.organization_id, "node.state_changed")
    subscribe(charlie.organization_id, "node.state_changed")
    platforms = {"node_id": NODE[:-1] + "5", "organization_id": None}

    def look(status: str, health: str) -> None:
        own = {"node_id": NODE, "organization_id": alice.organization_id}
        nodes[:] = [own | {"status": status, "health": health}, platforms]
        for _ in range(2):
            record_state_changes(now=timezone.now())

    look("pending", "pending")
    look("active", "online")
    look("active", "offline")
    nodes[:] = [platforms]
    for _ in range(2):
        record_state_changes(now=timezone.now())
    changes = [(data["before"]["health"], data["status"], data["health"]) for _, data in emitted()]
    assert changes == [
        ("pending", "active", "online"),
        ("online", "active", "offline"),
        ("offline", "removed", ""),
    ]
    assert endpoint.deliveries.count() == 3
