"""``Cache-Status``: how the cache handled a request (RFC 9211)."""

from typing import Final

NAME: Final = "Zonal"
# Of what is valid until it changes.
HIT: Final = f"{NAME}; hit"


def hit(*, ttl_s: int) -> str:
    """A stored response was used; a negative ttl means that it was stale."""
    return f"{HIT}; ttl={ttl_s}"


def forwarded(
    why: str,
    *,
    stored: bool,
    status: int | None = None,
    collapsed: bool = False,
    is_stale: bool = False,
    ignores_tags: bool = False,
) -> str:
    """The request was forwarded to the origin.

    why: ``uri-miss``, ``vary-miss``, ``stale`` … (RFC 9211 §2.2).
    status: the origin's, if the client gets another one.
    stored: the body will be kept, as far as its head says. collapsed: another request for the same
    was answered by the origin. is_stale: the response was older than it may be when it came.
    ignores_tags: it has more or longer tags than are kept.
    """
    parts = [NAME, f"fwd={why}"]
    if status is not None:
        parts.append(f"fwd-status={status}")
    if stored:
        parts.append("stored")
    if collapsed:
        parts.append("collapsed")
    if is_stale:
        parts.append("detail=stale-on-arrival")
    elif ignores_tags:
        parts.append("detail=tags-ignored")
    return "; ".join(parts)


def is_hit(status: str) -> bool:
    """True if the header says that the answer needed no origin: so it is counted."""
    return status.startswith(HIT)


def failed(why: str) -> str:
    """A stale response was used because the origin failed."""
    return f"{HIT}; detail={why}"


def refused(cause: str, *, why: str) -> str:
    """The cache has no response. why: the origin was asked, as for ``forwarded``; '' if not."""
    parts = [NAME, f"fwd={why}" if why else "", f"detail={cause}" if cause else ""]
    return "; ".join(part for part in parts if part)
