"""Ages of keys: when the task worker first saw a key, identified by its fingerprint."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db.models import Min

from accounts.audit import audit
from accounts.audit_tags import AccountTag
from accounts.models import AuditEvent
from platform_site.backup.manifest import fingerprint


def current() -> dict[str, str]:
    """Return the current key of each setting that holds one.

    None without SECRET_KEY, because in development each process then generates its own keys.
    """
    if not settings.SECRETS.secret_key:
        return {}
    accounts = settings.ACCOUNTS
    keys = {
        "SECRET_KEY": settings.SECRET_KEY,
        "ZSECRET_KEYS": settings.SECRET_KEYS[0],
        "ZJWT_SECRET": accounts.access_keys[0],
        "ZJWT_REFRESH_SECRET": accounts.refresh_keys[0],
        "ZMFA_SECRET": accounts.mfa_keys[0],
        "ZCACHE_BRAIN_SECRET": settings.CACHE.secret if settings.HAS_CACHE else "",
    }
    return {name: key for name, key in keys.items() if key}


def record() -> None:
    """Record new keys by their fingerprints, which reveal nothing about the keys."""
    known = _first_seen()
    for name, key in current().items():
        seen = {"setting": name, "fingerprint": fingerprint(key)}
        if (name, seen["fingerprint"]) not in known:
            audit.add(None, AccountTag.SYSTEM_KEY_SEE, data=seen)


def since() -> Iterator[tuple[str, datetime | None]]:
    """Yield each setting, and when its current key was first seen; None if it is new."""
    known = _first_seen()
    for name, key in current().items():
        yield name, known.get((name, fingerprint(key)))


def _first_seen() -> dict[tuple[str, str], datetime]:
    rows = (
        AuditEvent.objects.filter(tag=AccountTag.SYSTEM_KEY_SEE)
        .values_list("data__setting", "data__fingerprint")
        .annotate(first=Min("at"))
    )
    return {(name, mark): first for name, mark, first in rows}
