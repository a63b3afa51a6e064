"""``Cache-Status``: how the cache handled a request (RFC 9211)."""

from typing import Final

NAME: Final = "Zonal"


def hit(*, ttl_s: int) -> str:
    """Say that a kept answer was used; a negative ttl is a stale one's."""
    return f"{NAME}; hit; ttl={ttl_s}"


def forwarded(why: str, *, stored: bool, status: int | None = None, collapsed: bool = False) -> str:
    """Say that the origin was asked.

    why: ``uri-miss``, ``vary-miss``, ``stale`` … (RFC 9211 §2.2). status: the origin's, where the
    client is given another one. collapsed: together with another request.
    """
    parts = [NAME, f"fwd={why}"]
    if status is not None:
        parts.append(f"fwd-status={status}")
    if stored:
        parts.append("stored")
    if collapsed:
        parts.append("collapsed")
    return "; ".join(parts)


def failed(why: str) -> str:
    """Say that a stale answer stands in for an origin that failed."""
    return f"{NAME}; hit; detail={why}"
