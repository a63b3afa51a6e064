"""Backup codes: ten, shown once, each good once; a new set voids every earlier one."""

import secrets
from datetime import datetime
from typing import Final

from accounts.models import User
from twofactor.backup_codes.factor import FACTOR
from twofactor.models import BackupCode, Factor
from twofactor.stored_secrets import digest, digests

PURPOSE: Final = "backup code"
NUMBER: Final = 10
# Crockford's base32: no I, L, O, U, so that a code survives being read aloud or off paper.
ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUPS: Final = 4
GROUP_CHARS: Final = 4


def is_available() -> bool:
    """Return True: codes need nothing of this installation."""
    return True


def generate(user: User, *, now: datetime) -> list[str]:
    """Return ten new codes of 80 bits, as ``ABCD-2345-…``; call inside a transaction."""
    factor, _ = Factor.unscoped.get_or_create(  # unscoped: the user's own
        user=user,
        method=FACTOR.name,
        defaults={"organization_id": user.organization_id, "created_at": now},
    )
    locked = Factor.unscoped.select_for_update().get(pk=factor.pk)  # unscoped: as above
    locked.failures, locked.blocked_until = 0, None
    locked.save(update_fields=["failures", "blocked_until"])
    BackupCode.objects.filter(factor=locked).delete()
    codes = [_code() for _ in range(NUMBER)]
    BackupCode.objects.bulk_create(
        BackupCode(factor=locked, digest=code_digest(locked, plain(code))) for code in codes
    )
    return codes


def _code() -> str:
    chars = [secrets.choice(ALPHABET) for _ in range(GROUPS * GROUP_CHARS)]
    return "-".join(
        "".join(chars[start : start + GROUP_CHARS]) for start in range(0, len(chars), GROUP_CHARS)
    )


def plain(code: str) -> str:
    """Return a code without its dashes and blanks, in capitals."""
    return "".join(code.split()).replace("-", "").upper()


def code_digest(factor: Factor, code: str) -> str:
    """Return what is kept of a code."""
    return digest(PURPOSE, factor.pk, code)


def code_digests(factor: Factor, code: str) -> list[str]:
    """Return what may have been kept of a code, under this key or an earlier one."""
    return digests(PURPOSE, factor.pk, code)
