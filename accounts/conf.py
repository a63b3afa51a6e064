"""Settings of accounts: token keys and lifetimes, limits."""

import secrets
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from common.settings.env import Env, SettingError
from common.settings.table import (
    integer,
    load,
    secret,
    secret_list,
)

EARLIER: Final = "; behind it earlier ones that still verify, `key@2026-12-01` until that day."


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    """The HMAC keys as configured: the current one first, then earlier ones that still verify."""

    access: tuple[str, ...] = secret_list("ZJWT_SECRET", f"HMAC key for access tokens{EARLIER}")
    refresh: tuple[str, ...] = secret_list(
        "ZJWT_REFRESH_SECRET", f"HMAC key for refresh tokens{EARLIER}"
    )
    mfa: tuple[str, ...] = secret_list(
        "ZMFA_SECRET",
        f"HMAC key of the second factor (pending sign-ins, digests of codes, devices){EARLIER}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The HMAC keys: of each, the current key first, then previous keys that still verify.

    retirements: the day (UTC) from which a previous key no longer verifies, if it has one.
    """

    access: tuple[str, ...] = field(repr=False)
    refresh: tuple[str, ...] = field(repr=False)
    mfa: tuple[str, ...] = field(repr=False)
    retirements: dict[str, date] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    """Keys, lifetimes and limits of accounts. The keys are those of ``Keys``."""

    access_keys: tuple[str, ...] = field(repr=False)
    refresh_keys: tuple[str, ...] = field(repr=False)
    mfa_keys: tuple[str, ...] = field(repr=False)
    key_retirements: dict[str, date] = field(repr=False)
    access_ttl_s: int = integer(
        "ZJWT_ACCESS_TTL_SECS",
        "Access token lifetime.",
        default=900,
        unit="s",
        minimum=1,
        maximum=86400,
    )
    refresh_ttl_s: int = integer(
        "ZJWT_REFRESH_TTL_SECS",
        "Refresh token lifetime.",
        default=604800,
        unit="s",
        minimum=1,
        maximum=31536000,
    )
    session_max_s: int = integer(
        "ZJWT_SESSION_MAX_SECS",
        "Maximum lifetime of a sign-in, including refreshes.",
        default=2592000,
        unit="s",
        minimum=60,
        maximum=2592000,
    )
    dev_org_id: int = integer(
        "ZAUTH_DEV_ORG_ID", "Organization id for development tokens; 0 means none.", default=0
    )
    dev_secret: str = secret("ZAUTH_DEV_SECRET", "HMAC key of development tokens.")
    signups_per_hour: int = integer(
        "ZLIMIT_SIGNUPS_PER_HOUR",
        "Sign-ups per client address.",
        default=20,
        unit="per hour",
        minimum=1,
    )
    logins_per_address: int = integer(
        "ZLIMIT_LOGINS_PER_ADDRESS",
        "Failed logins per client address.",
        default=100,
        unit="per 15 minutes",
        minimum=1,
    )


TABLES: Final = (KeySettings, AccountSettings)


def read(env: Env, *, secret_key: str) -> AccountSettings:
    """Return the settings of accounts.

    secret_key: Django's, which must differ from the others.
    Raises SettingError.
    """
    held = keys(env, secret_key)
    return load(
        AccountSettings,
        env,
        access_keys=held.access,
        refresh_keys=held.refresh,
        mfa_keys=held.mfa,
        key_retirements=held.retirements,
    )


def keys(env: Env, secret_key: str) -> Keys:
    """Return the keys of all token types.

    An unset key is random. `up` creates the keys once and stores them in runtime.env; a process
    started without them signs with keys that no other process has, and `check --deploy` refuses
    that in production.
    Raises SettingError for a key used twice, ``secret_key`` among them.
    """
    given = load(KeySettings, env)
    retirements: dict[str, date] = {}
    found = Keys(
        access=_ring("ZJWT_SECRET", given.access, retirements),
        refresh=_ring("ZJWT_REFRESH_SECRET", given.refresh, retirements),
        mfa=_ring("ZMFA_SECRET", given.mfa, retirements),
        retirements=retirements,
    )
    every = (secret_key, *found.access, *found.refresh, *found.mfa)
    if len(set(every)) < len(every):
        raise SettingError(
            "ZJWT_SECRET",
            "must differ from ZJWT_REFRESH_SECRET, ZMFA_SECRET, SECRET_KEY and the earlier keys.",
        )
    return found


def _ring(name: str, given: tuple[str, ...], retirements: dict[str, date]) -> tuple[str, ...]:
    current, *earlier = given or (secrets.token_urlsafe(48),)
    former = []
    for entry in earlier:
        key, mark, day = entry.rpartition("@") if "@" in entry else (entry, "", "")
        if mark:
            retirements[key] = _day(name, day)
        former.append(key)
    return (current, *former)


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SettingError(
            name, "contains a key with an invalid date; write it as @2026-12-01."
        ) from None
