"""Identifiers: sortable ones for rows, unguessable ones for capabilities."""

import secrets
from uuid import UUID

import uuid_utils.compat


def uuid7() -> UUID:
    """Return a time-ordered UUID (RFC 9562 §5.7), so that inserts stay at the end of an index."""
    return uuid_utils.compat.uuid7()


def capability_id() -> str:
    """Return 128 random bits as 22 URL-safe characters; knowing the id gives access."""
    return secrets.token_urlsafe(16)
