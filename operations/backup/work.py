"""The state of a backup in progress on this machine, so that the next call continues it.

In ``ZDATA_DIR/backup``, readable by its owner only: the plan, a log of finished steps, and scratch
files.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

import psycopg
from django.conf import settings

from common.commands import CommandRefused
from common.machine.files import read_text, write_private
from common.machine.folders import make_private
from edgecache.brain.stores.archived_bytes import Bytes
from operations.backup import control
from operations.backup.sealing import Digest
from sqlgateway.errors import EngineUnavailable

# An older backup in progress is started again, because its snapshot is outdated.
CONTINUED_FOR: Final = timedelta(hours=24)
LOCK: Final = "SELECT pg_try_advisory_lock(hashtextextended('zonal backup', 0))"
UNLOCK: Final = "SELECT pg_advisory_unlock(hashtextextended('zonal backup', 0))"

# Waits for a cluster that is busy or restarting.
TRIES: Final = 4
PAUSE_S: Final = 2.0

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EnvironmentPlan:
    """An environment's database at the snapshot. number: for the name of its dump."""

    number: int
    database_pk: int
    organization_id: int
    environment_pk: int
    slug: str
    state: str
    admin_role: str
    operator_role: str
    reader_role: str
    major: int

    @property
    def file(self) -> str:
        """Return the name of its dump within the backup."""
        return f"environments/{self.number}.dump.age"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The planned contents of a backup. files: those written with the plan."""

    id: str
    kind: str
    store: str
    started_at: str
    migrations: Sequence[str]
    major: int
    key: str
    recipients: Sequence[str]
    environments: Sequence[EnvironmentPlan]
    objects: int
    object_bytes: int
    files: dict[str, Digest] = field(default_factory=dict)


def retry_while_unavailable(do: Callable[[], T]) -> T:
    """Run work that needs a tenants' cluster; repeat it while the cluster is unavailable.

    Raises EngineUnavailable.
    """
    for _ in range(TRIES - 1):
        try:
            return do()
        except EngineUnavailable:
            time.sleep(PAUSE_S)
    return do()


def environments_of(text: str) -> list[EnvironmentPlan]:
    """Return the environments of a backup's ``contents``."""
    return [EnvironmentPlan(**row) for row in json.loads(text)]


class Work:
    """The folder of the backup in progress."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._done = folder / "done.jsonl"
        self._plan = folder / "plan.json"
        self._objects_done = folder / "objects-done.jsonl"
        self.objects = folder / "objects.txt"

    def scratch(self, name: str) -> Path:
        """Return the path of a scratch file, which the next call removes."""
        return self.folder / f"scratch-{name}"

    def plan(self) -> Plan | None:
        """Return the plan of the backup in progress; None if there is none to continue."""
        try:
            fields = json.loads(read_text(self._plan))
            fields["files"] = {name: Digest(*digest) for name, digest in fields["files"].items()}
            rows = [EnvironmentPlan(**row) for row in fields["environments"]]
            plan = Plan(**{**fields, "environments": rows})
        except (ValueError, TypeError, KeyError):
            return None
        age = datetime.now(UTC) - datetime.fromisoformat(plan.started_at)
        return plan if age < CONTINUED_FOR else None

    def begin(self, plan: Plan) -> None:
        """Store a plan; from now on the backup can be continued."""
        self._done.unlink(missing_ok=True)
        self._objects_done.unlink(missing_ok=True)
        write_private(self._plan, json.dumps(asdict(plan)))

    def done(self) -> dict[str, Digest]:
        """Return the digests of the files written since the plan, by name."""
        return _read(self._done)

    def add(self, name: str, digest: Digest) -> None:
        """Record that a file was written."""
        _append(self._done, name, digest)

    def objects_done(self) -> dict[str, Digest]:
        """Return the digests of object bytes written since the plan, by name."""
        return _read(self._objects_done)

    def add_object(self, name: str, digest: Digest) -> None:
        """Record that an object's bytes were written."""
        _append(self._objects_done, name, digest)

    def all_objects(self) -> Iterator[Bytes]:
        """Return the object bytes of the plan."""
        with self.objects.open() as lines:
            for line in lines:
                sha256, size = line.split()
                yield Bytes(sha256, int(size))

    def end(self) -> None:
        """Delete the state of the backup."""
        shutil.rmtree(self.folder)


@contextmanager
def exclusive(kind: str) -> Iterator[Work]:
    """Yield the folder for one kind of work; one process at a time backs up or restores.

    Raises CommandRefused.
    """
    with control.connect("default") as connection:
        row = connection.execute(LOCK).fetchone()
        if row is None or not row[0]:
            raise CommandRefused("backup_busy", "Another backup, restore or prune is running.")
        folder = settings.DATA_DIR / "backup" / kind
        for each in (folder.parent, folder):
            make_private(each)
        for left in folder.glob("scratch-*"):
            left.unlink()
        try:
            yield Work(folder)
        finally:
            # Released explicitly: the server would do so some time after the connection is closed.
            with suppress(psycopg.Error):
                connection.execute(UNLOCK)


def _append(file: Path, name: str, digest: Digest) -> None:
    with file.open("a") as opened:
        opened.write(f"\n{json.dumps([name, digest])}")


def _read(file: Path) -> dict[str, Digest]:
    found: dict[str, Digest] = {}
    for line in read_text(file).splitlines():
        try:
            name, digest = json.loads(line)
        except ValueError:
            # The line is empty, or was cut by a crash.
            continue
        found[name] = Digest(*digest)
    return found
