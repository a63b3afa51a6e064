"""Backup codes: ten, shown once, each valid once; a new set invalidates all earlier codes."""

from datetime import datetime
from typing import Final

from accounts.models import User
from common import ids
from twofactor.backup_codes.factor import FACTOR
from twofactor.models import BackupCode, Factor
from twofactor.stored_secrets import digest, digests

PURPOSE: Final = "backup code"
NUMBER: Final = 10
GROUPS: Final = 4
GROUP_CHARS: Final = 4
CODE_CHARS: Final = GROUPS * GROUP_CHARS


def is_available() -> bool:
    """Return True: backup codes need no configuration."""
    return True


def generate(user: User, *, now: datetime) -> list[str]:
    """Return ten new codes of 80 bits, as ``ABCD-2345-…``; call inside a transaction."""
    factor, _ = Factor.objects.get_or_create(
        user=user,
        method=FACTOR.name,
        defaults={"organization_id": user.organization_id, "created_at": now},
    )
    locked = Factor.objects.select_for_update().get(pk=factor.pk)
    locked.failures, locked.blocked_until = 0, None
    locked.save(update_fields=["failures", "blocked_until"])
    BackupCode.objects.filter(factor=locked).delete()
    codes = [_code() for _ in range(NUMBER)]
    BackupCode.objects.bulk_create(
        BackupCode(factor=locked, digest=code_digest(locked, ids.typed_code(code)))
        for code in codes
    )
    return codes


def _code() -> str:
    chars = ids.random_code(CODE_CHARS)
    groups = (chars[start : start + GROUP_CHARS] for start in range(0, CODE_CHARS, GROUP_CHARS))
    return "-".join(groups)


def code_digest(factor: Factor, code: str) -> str:
    """Return the digest that is stored of a code."""
    return digest(PURPOSE, factor.pk, code)


def code_digests(factor: Factor, code: str) -> list[str]:
    """Return the possible digests of a code: under the current key and under earlier ones."""
    return digests(PURPOSE, factor.pk, code)
