"""The time of a backup of a large platform, and of its restore on empty servers.

1 GB in the control plane, 100 environments of 1,000 rows, 10,000 objects of up to 140 KB; the store
is a folder. Both servers, the commands and the store share the machine.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

from operations.embedded.throwaway import throwaway_environment

CONTROL_BYTES: Final = 10**9
ORGANIZATIONS: Final = 50
OBJECTS: Final = 10_000
ROWS: Final = """
CREATE TABLE readings (id int PRIMARY KEY, taken_at timestamptz DEFAULT now(), note text);
INSERT INTO readings (id, note) SELECT n, md5(n::text) FROM generate_series(1, 1000) AS n;
"""
# Copies of an entry of the audit trail, because that is the largest table of a control plane.
ENTRIES: Final = """
INSERT INTO audit_auditevent (id, {columns})
SELECT gen_random_uuid(), {columns}
FROM (SELECT * FROM audit_auditevent LIMIT 1) AS entry, generate_series(1, 100000)
"""
COLUMNS: Final = """
SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
WHERE table_name = 'audit_auditevent' AND column_name <> 'id'
"""
SIZE: Final = "SELECT pg_database_size(current_database())"


def measure(_identity: Mapping[str, str], *, rounds: int, seconds: float) -> None:
    """Print the times of one backup and of its restore. rounds, seconds: not used."""
    from tests.operations.backup.keys import Keys  # noqa: PLC0415 - needs django.setup()

    with tempfile.TemporaryDirectory(prefix="zonal-bench-") as name:
        folder = Path(name)
        keys = Keys(folder)
        (folder / "store").mkdir()
        print(f"control plane of {_fill() / 1e9:.2f} GB", flush=True)
        backup = {"ZBACKUP_URL": f"file://{folder}/store", "ZBACKUP_RECIPIENTS": keys.public}
        print(f"backup: {_timed(['backup'], os.environ | backup):.0f} s", flush=True)
        with throwaway_environment(os.environ) as elsewhere:
            secrets = {each: os.environ[each] for each in ("ZSECRET_KEYS", "ZMFA_SECRET")}
            words = ["restore", "--identity", str(keys.file)]
            print(f"restore: {_timed(words, elsewhere | secrets | backup):.0f} s")


def _timed(words: list[str], variables: Mapping[str, str]) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "manage.py", *words], env=dict(variables), check=True)
    return time.monotonic() - began


def _fill() -> int:
    """Fill the platform; return the size of its control database in bytes."""
    from django.db import connection  # noqa: PLC0415 - needs django.setup()

    from audit import trail  # noqa: PLC0415 - as above
    from organizations.audit_tags import OrganizationTag  # noqa: PLC0415 - as above
    from tests import cast  # noqa: PLC0415 - as above
    from tests.operations.backup import fill  # noqa: PLC0415 - as above

    for number in range(ORGANIZATIONS):
        home = cast.organization(f"Bench {number}")
        user = cast.member(home, f"backup{number}@example.com")
        for environment in ("live", "sandbox"):
            answer = cast.signed_in(user, environment).post("/v1/sql", {"query": ROWS})
            if answer.status != HTTPStatus.OK:
                raise RuntimeError(answer.body)
    fill.add_objects(home.pk, OBJECTS)
    trail.add(None, OrganizationTag.CLI_MEMBER_CREATE, organization_id=home.pk)
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        (columns,) = cursor.fetchone()
        size = 0
        while size < CONTROL_BYTES:
            cursor.execute(ENTRIES.format(columns=columns))
            cursor.execute(SIZE)
            (size,) = cursor.fetchone()
    return int(size)
