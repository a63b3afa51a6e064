"""The gateway's limits as settings, named for settings.py and read by sqlgateway.conf alone."""

from typing import Final, NamedTuple

from platform_site.env import Env


class IntegerSetting(NamedTuple):
    """One integer setting; ``env`` is the variable it is read from."""

    name: str
    env: str
    default: int
    help_text: str
    minimum: int
    maximum: int


MIB: Final = 2**20

SETTINGS: Final = (
    IntegerSetting(
        "SQL_TIMEOUT_MS", "ZSQL_TIMEOUT_MS", 30_000, "Longest run of one SQL request.", 1, 600_000
    ),
    IntegerSetting(
        "SQL_GRACE_MS",
        "ZSQL_GRACE_MS",
        500,
        "Milliseconds between cancelling a late query and terminating its backend.",
        50,
        10_000,
    ),
    IntegerSetting(
        "SQL_MAX_ROWS", "ZSQL_MAX_ROWS", 10_000, "Rows of one result in JSON.", 1, 1_000_000
    ),
    IntegerSetting(
        "SQL_MAX_BYTES",
        "ZSQL_MAX_BYTES",
        8 * MIB,
        "Bytes of rows in one JSON answer.",
        1024,
        256 * MIB,
    ),
    IntegerSetting(
        "SQL_BUFFER_BYTES",
        "ZSQL_BUFFER_BYTES",
        32 * MIB,
        "Bytes of undivided result (some rows, one notice) that one request may hold.",
        MIB,
        1024 * MIB,
    ),
    IntegerSetting(
        "SQL_BODY_LIMIT_BYTES",
        "ZSQL_BODY_LIMIT_BYTES",
        MIB,
        "Largest body of POST /v1/sql.",
        1024,
        16 * MIB,
    ),
    IntegerSetting(
        "SQL_MAX_STATEMENTS", "ZSQL_MAX_STATEMENTS", 100, "Statements of one request.", 1, 10_000
    ),
    IntegerSetting(
        "SQL_CONNECTIONS",
        "ZSQL_CONNECTIONS",
        40,
        "Connections to tenants' clusters per process.",
        1,
        10_000,
    ),
    IntegerSetting(
        "SQL_IDLE_S", "ZSQL_IDLE_S", 60, "Seconds an unused tenant connection is kept.", 0, 86_400
    ),
    IntegerSetting(
        "SQL_CONNECT_TIMEOUT_S",
        "ZSQL_CONNECT_TIMEOUT_S",
        3,
        "Seconds to reach a tenants' cluster.",
        2,
        60,
    ),
    IntegerSetting(
        "SQL_RUNNING", "ZSQL_RUNNING", 16, "SQL requests running at once per process.", 1, 10_000
    ),
    IntegerSetting(
        "SQL_RUNNING_PER_ENVIRONMENT",
        "ZSQL_RUNNING_PER_ENVIRONMENT",
        4,
        "Of these, of one environment.",
        1,
        10_000,
    ),
    IntegerSetting(
        "SQL_QUEUE_PER_ENVIRONMENT",
        "ZSQL_QUEUE_PER_ENVIRONMENT",
        2,
        "SQL requests of one environment that wait for their turn, per process.",
        0,
        10_000,
    ),
    IntegerSetting(
        "SQL_QUEUE_WAIT_MS", "ZSQL_QUEUE_WAIT_MS", 2_000, "Longest such wait.", 0, 60_000
    ),
    IntegerSetting(
        "SQL_STOCK", "ZSQL_STOCK", 2, "Prepared databases kept for new environments.", 0, 1_000
    ),
    IntegerSetting(
        "SQL_ROLE_CONNECTIONS",
        "ZSQL_ROLE_CONNECTIONS",
        20,
        "CONNECTION LIMIT of each of a tenant's three roles, over all processes.",
        1,
        10_000,
    ),
    IntegerSetting(
        "SQL_DATABASE_CONNECTIONS",
        "ZSQL_DATABASE_CONNECTIONS",
        30,
        "CONNECTION LIMIT of a tenant's database, over all processes.",
        1,
        10_000,
    ),
    IntegerSetting(
        "SQL_TEMP_FILE_LIMIT_KIB",
        "ZSQL_TEMP_FILE_LIMIT_KIB",
        1024 * 1024,
        "Temporary files of one session (temp_file_limit).",
        1024,
        2**31 - 1,
    ),
    IntegerSetting(
        "SQL_WORK_MEM_KIB", "ZSQL_WORK_MEM_KIB", 4096, "A session's work_mem.", 64, 2**21
    ),
)
DEFAULTS: Final = {setting.name: setting.default for setting in SETTINGS}


def read(env: Env) -> dict[str, int]:
    """Give every limit by its setting's name.

    Raises SettingError for a wrong value.
    """
    return {
        row.name: env.integer(
            row.env, row.default, help_text=row.help_text, minimum=row.minimum, maximum=row.maximum
        )
        for row in SETTINGS
    }
