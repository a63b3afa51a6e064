"""Settings of tokens and sessions: the keys that sign them, and how long they live.

A key that is unset is random: `up` makes them once and keeps them in runtime.env; a process started
without either signs with keys of its own, and `check --deploy` refuses that in production.
"""

import secrets
from datetime import date
from typing import Final, NamedTuple

from platform_site.env import Env, SettingError


class Keys(NamedTuple):
    """The HMAC keys, each the current one first and then those that still verify.

    retirements: the day (UTC) from which on a former key no longer does, where it has one.
    """

    access: tuple[str, ...]
    refresh: tuple[str, ...]
    mfa: tuple[str, ...]
    retirements: dict[str, date]


class Lifetimes(NamedTuple):
    """Seconds that tokens and sessions live, and how many sessions a user may hold."""

    access_s: int
    refresh_s: int
    refresh_grace_s: int
    session_max_s: int
    sessions_per_user: int


# By the field of Lifetimes: the variable, its default, what it means, and its bounds.
_LIFETIMES: Final = {
    "access_s": (
        "ZJWT_ACCESS_TTL_SECS",
        900,
        "Access token lifetime in seconds.",
        1,
        86400,
    ),
    "refresh_s": (
        "ZJWT_REFRESH_TTL_SECS",
        604800,
        "Refresh token lifetime in seconds.",
        1,
        31536000,
    ),
    "refresh_grace_s": (
        "ZJWT_REFRESH_GRACE_SECS",
        10,
        "Seconds in which the previous refresh token gives the same successor again.",
        0,
        120,
    ),
    "session_max_s": (
        "ZJWT_SESSION_MAX_SECS",
        2592000,
        "Longest life of one sign-in in seconds, however often it is refreshed.",
        60,
        2592000,
    ),
    "sessions_per_user": (
        "ZSESSIONS_PER_USER",
        100,
        "Live sessions one user may hold; the least recently used one ends for a new one.",
        1,
        10000,
    ),
}


def keys(env: Env, secret_key: str) -> Keys:
    """Give the keys of every token.

    Raises SettingError for a key used twice, ``secret_key`` among them.
    """
    retirements: dict[str, date] = {}
    found = Keys(
        retirements=retirements,
        access=_keys(
            env,
            retirements,
            "ZJWT_SECRET",
            help_text="HMAC key for access tokens.",
            previous="Earlier access keys that still verify.",
        ),
        refresh=_keys(
            env,
            retirements,
            "ZJWT_REFRESH_SECRET",
            help_text="HMAC key for refresh tokens.",
            previous="Earlier refresh keys that still verify.",
        ),
        mfa=_keys(
            env,
            retirements,
            "ZMFA_SECRET",
            help_text="HMAC key of the second factor: pending sign-ins, digests of codes, devices.",
            previous="Earlier keys that still verify: backup codes, trusted devices.",
        ),
    )
    every = (secret_key, *found.access, *found.refresh, *found.mfa)
    if len(set(every)) < len(every):
        raise SettingError(
            "ZJWT_SECRET",
            "must differ from ZJWT_REFRESH_SECRET, ZMFA_SECRET, SECRET_KEY and the previous keys.",
        )
    return found


def lifetimes(env: Env) -> Lifetimes:
    """Give how long tokens and sessions live (interface.md, "Configuration variables").

    Raises SettingError.
    """
    return Lifetimes(
        **{
            field: env.integer(name, default, help_text=help_text, minimum=minimum, maximum=maximum)
            for field, (name, default, help_text, minimum, maximum) in _LIFETIMES.items()
        }
    )


def _keys(
    env: Env, retirements: dict[str, date], name: str, *, help_text: str, previous: str
) -> tuple[str, ...]:
    current = env.secret(name, help_text=help_text) or secrets.token_urlsafe(48)
    held = f"{name}_PREVIOUS"
    former = []
    for entry in env.secrets(held, help_text=f"{previous} `key@2026-12-01`: until that day."):
        key, mark, day = entry.rpartition("@") if "@" in entry else (entry, "", "")
        if mark:
            retirements[key] = _day(held, day)
        former.append(key)
    return (current, *former)


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SettingError(name, "holds a key with a date that is none, as @2026-12-01.") from None
