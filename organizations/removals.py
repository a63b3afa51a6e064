"""Memory of removed members, so that no rule of a provider undoes what an admin decided."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Final
from uuid import UUID

from accounts.models import User
from common.emails import folded
from organizations.models import RemovedMember

# What a user signs in with in higher apps, as texts; these append theirs in ``AppConfig.ready()``.
SOURCES: Final[list[Callable[[UUID], list[str]]]] = []


def remember(member: User, *, now: datetime) -> None:
    """Keep that an admin removes a member. Call in the transaction that deletes it, before."""
    identities = [text for source in SOURCES for text in source(member.pk)]
    texts = [_address(member.email), *identities] if member.email else identities
    if texts:
        RemovedMember.objects.create(
            organization_id=member.organization_id,
            digests=[_digest(text) for text in texts],
            removed_at=now,
        )


def forget(organization_id: int, email: str) -> None:
    """Forget the removal of the person with an address, who is invited again."""
    digest = _digest(_address(email))
    rows = RemovedMember.objects.filter(organization_id=organization_id)
    rows.filter(digests__contains=[digest]).delete()


def is_removed(organization_id: int, *, email: str, identity: str) -> bool:
    """True if an admin removed the person. identity: a text as ``SOURCES`` give them."""
    digests = [_digest(_address(email)), _digest(identity)]
    rows = RemovedMember.objects.filter(organization_id=organization_id)
    return rows.filter(digests__overlap=digests).exists()


def _address(email: str) -> str:
    return f"mail {folded(email)}"


def _digest(text: str) -> str:
    return hashlib.sha256(f"removed member\0{text}".encode()).hexdigest()
