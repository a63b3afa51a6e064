"""The keys of tokens and stored secrets: when were they rotated, which can be removed?"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings

from accounts.audit_tags import AccountTag
from accounts.models import AuditEvent
from accounts.tokens import key_rotation
from platform_site.doctor.findings import Finding, Level

SUBJECT: Final = "keys"
OLD: Final = timedelta(days=365)


def check_keys() -> Iterator[Finding]:
    """Check the age of the signing keys, and for former ones that verify nothing any more."""
    now = datetime.now(UTC)
    yield _age(now)
    accounts = settings.ACCOUNTS
    for name, ring in zip(
        key_rotation.ROTATED, (accounts.access_keys, accounts.refresh_keys), strict=True
    ):
        dates = [accounts.key_retirements.get(key) for key in ring[1:]]
        if any(date is None for date in dates):
            message = f"A key of {name}_PREVIOUS has no last day, and verifies forever."
            advice = "Give it as KEY@DATE, or remove it."
            yield Finding(SUBJECT, Level.WARNING, message, advice)
        if any(date is not None and date <= now.date() for date in dates):
            message = f"A key of {name}_PREVIOUS has retired."
            yield Finding(SUBJECT, Level.WARNING, message, "Remove it from the setting.")


def _age(now: datetime) -> Finding:
    events = AuditEvent.objects.filter(tag=AccountTag.CLI_KEY_ROTATE)
    latest = events.order_by("-at").first()
    advice = "Run `manage.py rotatekeys` once a year, and after a person with access leaves."
    if latest is None:
        message = "The audit trail has no rotation of the tokens' keys."
        return Finding(SUBJECT, Level.SKIPPED, message, advice)
    age = now - latest.at
    message = f"The tokens' keys were rotated {age.days} days ago."
    if age > OLD:
        return Finding(SUBJECT, Level.WARNING, message, advice)
    return Finding(SUBJECT, Level.OK, message)
