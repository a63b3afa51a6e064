"""New devices: recorded in the audit trail, mailed, and sent to webhooks.

Every request that opens a session or goes on with one by its refresh token counts.

A device is a kind of program and a network: an updated browser or another address of the same
provider is not a new device. An attacker with the password, the same program and network is not
detected; that requires a second factor. A known device gives no access, but its attempts at the
password are counted separately, so that attackers elsewhere do not throttle the owner
(credentials.py).
"""

import hashlib
import ipaddress
import re
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from accounts import notices
from accounts.audit_tags import AccountTag
from accounts.models import KnownDevice, Session, User
from accounts.sessions.sessions import RequestSource
from audit import trail
from common import rate_limits
from common.ids import uuid7
from common.principals import PlatformRequest
from outbox.messages.templates import console_link
from outbox.webhooks import events

UNKNOWN_USER: Final = UUID(int=0)
KEEP: Final = timedelta(days=180)
HOUR: Final = timedelta(hours=1)
MAILS_AN_HOUR: Final = 3
PREFIX_BITS: Final = {4: 24, 6: 56}
BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
# Programs other than browsers begin with their name: curl/8.5.0.
PRODUCT: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}")

# Returns whether the row was added, and whether the user had one before (a statement does not see
# the row that it adds).
_SEE: Final = """
INSERT INTO accounts_knowndevice (id, organization_id, user_id, digest, last_seen_at)
VALUES (%(id)s, %(organization_id)s, %(user_id)s, %(digest)s, %(now)s)
ON CONFLICT (user_id, digest) DO UPDATE SET last_seen_at = EXCLUDED.last_seen_at
RETURNING xmax = 0, EXISTS (SELECT FROM accounts_knowndevice WHERE user_id = %(user_id)s)
"""


def program_of(agent: str) -> str:
    """Return a name for a program; clients can send any text as User-Agent."""
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    browser = next((name for mark, name in BROWSERS if mark in agent), "")
    if not browser:
        found = PRODUCT.match(agent)
        return found[0] if found else "an unknown program"
    return f"{browser} on {system}" if system else browser


def provider_network(address: str) -> str:
    """Return the /24 (IPv6: /56) of an address, in which providers may change it."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "an unknown network"
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    real = mapped or found
    return str(ipaddress.ip_network((real, PREFIX_BITS[real.version]), strict=False))


def device_of(user: User | None, source: RequestSource) -> str:
    """Return the digest of a user's device; without a user, one that matches no row."""
    return _digest(_key(user), source)


def is_known(user: User | None, device: str) -> bool:
    """True if the user has signed in from the device."""
    mine = KnownDevice.objects.filter(user_id=_key(user))
    return mine.filter(digest=device).exists()


def is_new(session: Session, *, now: datetime) -> bool:
    """Record the device of a session; True if it is new and the user has had others.

    Call in the transaction that opens the session or keeps where it is used from.
    """
    device = _digest(session.user_id, RequestSource(session.address, session.agent))
    row: dict[str, Any] = {
        "id": uuid7(),
        "organization_id": session.organization_id,
        "user_id": session.user_id,
        "digest": device,
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SEE, row)
        was_added, has_others = cursor.fetchone()
    if not was_added:
        return False
    return has_others or _differs_from_sessions(session, device)


def notify(request: PlatformRequest, session: Session, *, environment: str, now: datetime) -> None:
    """Record the device, mail the user, at most three times an hour, and queue the event."""
    user = session.user
    trail.record_user(request, AccountTag.SESSION_NEW_DEVICE, user, session=str(session.id))
    program, network = program_of(session.agent), provider_network(session.address)
    data = {
        "user_id": str(user.pk),
        "email": user.email,
        "agent": program,
        "network": network,
        "environment": environment,
    }
    events.emit(user.organization_id, "session.new_device", data)
    if rate_limits.take("new device", str(user.pk), limit=MAILS_AN_HOUR, window=HOUR, now=now):
        return
    notices.notify(
        user,
        "new_device",
        environment=environment,
        address=network,
        agent=program,
        sessions_link=console_link("account"),
    )


def delete_old(*, now: datetime) -> int:
    """Delete devices that were not used for ``KEEP``; return their number."""
    old = KnownDevice.objects.filter(last_seen_at__lt=now - KEEP)
    number: int = old.delete()[0]
    return number


def _key(user: User | None) -> UUID:
    return user.pk if user else UNKNOWN_USER


def _digest(user_id: object, source: RequestSource) -> str:
    parts = (str(user_id), program_of(source.agent), provider_network(source.address))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _differs_from_sessions(session: Session, device: str) -> bool:
    """True if a user without known devices had sessions, none of them from this device.

    Such sessions are older than this table, or than its retention.
    """
    earlier = (
        Session.objects.filter(organization_id=session.organization_id)
        .filter(user_id=session.user_id)
        .exclude(pk=session.pk)
        .values_list("address", "agent")
        .distinct()[:1000]
    )
    seen = {_digest(session.user_id, RequestSource(address, agent)) for address, agent in earlier}
    return bool(seen) and device not in seen
