"""Settings of accounts: how often each way in may be tried, and what a password's hash costs."""

from typing import Final, NamedTuple

from platform_site.env import Env, SettingError

# The database refuses to forget what is younger.
LEAST_RETENTION_DAYS = 30


class Limits(NamedTuple):
    """How often a sign-up, a sign-in, a code or a recovery may be asked for."""

    signups_per_hour: int
    logins_per_address: int
    logins_per_account: int
    passkey_starts_per_address: int
    sends_per_receiver: int
    sends_per_organization: int
    sends_per_address: int
    recoveries_per_address: int
    recoveries_per_account: int
    invitations_per_day: int
    invitations_open: int
    invitation_tries_per_address: int


class Argon2(NamedTuple):
    """The cost of one password's hash, and how many a process computes at once."""

    memory_kib: int
    time_cost: int
    parallelism: int
    concurrency: int


# By the field of Limits: the variable, its default, and what it means.
_LIMITS: Final = {
    "signups_per_hour": (
        "ZLIMIT_SIGNUPS_PER_HOUR",
        20,
        "Sign-ups per client address and hour.",
    ),
    "logins_per_address": (
        "ZLIMIT_LOGINS_PER_ADDRESS",
        100,
        "Failed logins per client address in 15 minutes.",
    ),
    "logins_per_account": (
        "ZLIMIT_LOGINS_PER_ACCOUNT",
        5,
        "Failed logins per account before each further try waits longer (to 15 minutes).",
    ),
    "passkey_starts_per_address": (
        "ZLIMIT_PASSKEY_STARTS_PER_ADDRESS",
        600,
        "Sign-ins by passkey begun per client address in 15 minutes.",
    ),
    "sends_per_receiver": (
        "ZMFA_SENDS_PER_RECEIVER",
        20,
        "Codes sent to one number or address in a day.",
    ),
    "sends_per_organization": (
        "ZMFA_SENDS_PER_ORGANIZATION",
        2000,
        "Codes sent for one organization in a day.",
    ),
    "sends_per_address": (
        "ZMFA_SENDS_PER_ADDRESS",
        200,
        "Codes sent in a day for setting factors up, per client address.",
    ),
    "recoveries_per_address": (
        "ZLIMIT_RECOVERIES_PER_ADDRESS",
        30,
        "Recoveries started per client address and hour.",
    ),
    "recoveries_per_account": (
        "ZLIMIT_RECOVERIES_PER_ACCOUNT",
        10,
        "Recoveries started for one account in a day.",
    ),
    "invitations_per_day": (
        "ZINVITATIONS_PER_DAY",
        200,
        "Invitations that one organization may send in a day.",
    ),
    "invitations_open": (
        "ZINVITATIONS_OPEN",
        1000,
        "Invitations of one organization that wait at once.",
    ),
    "invitation_tries_per_address": (
        "ZLIMIT_INVITATION_TRIES_PER_ADDRESS",
        100,
        "Invitations looked at or accepted per client address and hour.",
    ),
}


def limits(env: Env) -> Limits:
    """Give every limit of an account's ways in.

    Raises SettingError.
    """
    return Limits(
        **{
            field: env.integer(name, default, help_text=help_text, minimum=1)
            for field, (name, default, help_text) in _LIMITS.items()
        }
    )


def recovery_delay_s(env: Env) -> int:
    """Give ZRECOVERY_DELAY_SECS, the wait of a recovery without the second factor.

    Raises SettingError.
    """
    return env.integer(
        "ZRECOVERY_DELAY_SECS",
        86400,
        help_text="Seconds between two proofs of who lost the second factor and its removal; "
        "any notified address can cancel until then.",
        minimum=60,
        maximum=2592000,
    )


def argon2(env: Env) -> Argon2:
    """Give the cost of passwords' hashes.

    Raises SettingError.
    """
    return Argon2(
        memory_kib=env.integer(
            "ZARGON2_MEMORY_KIB", 19456, help_text="Argon2id memory per hash.", minimum=8192
        ),
        time_cost=env.integer(
            "ZARGON2_TIME_COST", 2, help_text="Argon2id passes.", minimum=1, maximum=100
        ),
        parallelism=env.integer(
            "ZARGON2_PARALLELISM", 1, help_text="Argon2id lanes.", minimum=1, maximum=64
        ),
        concurrency=env.integer(
            "ZARGON2_CONCURRENCY",
            2,
            help_text="Hashes computed at once in one process; further ones wait their turn.",
            minimum=1,
            maximum=256,
        ),
    )


def audit_retention_days(env: Env) -> int:
    """Give how long events of the audit trail are kept; 0 keeps them for ever.

    Raises SettingError.
    """
    days = env.integer(
        "ZAUDIT_RETENTION_DAYS",
        365,
        help_text="Days that events of the audit trail are kept, at least 30; 0 keeps all.",
        maximum=36500,
    )
    if 0 < days < LEAST_RETENTION_DAYS:
        raise SettingError("ZAUDIT_RETENTION_DAYS", "must be 0, or at least 30.")
    return days
