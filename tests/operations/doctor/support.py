"""Read what the doctor says."""

from typing import Any

from tests.commands import facts, refused


def findings(subject: str, *, is_healthy: bool) -> list[tuple[str, str, str]]:
    """Return level, message and advice of each finding about a subject."""
    report = facts("doctor") if is_healthy else refused("doctor")[1]
    return [
        (one["level"], one["message"], one["advice"])
        for one in report["findings"]
        if one["subject"] == subject
    ]


def node(health: str = "online", **more: Any) -> dict[str, Any]:
    """Return a node as the brain lists it: approved, and the platform's own."""
    return {"status": "active", "health": health, "organization_id": None} | more
