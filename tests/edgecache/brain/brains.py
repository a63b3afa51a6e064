"""The core of a brain without its servers, on the test's database."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from common.ids import uuid7
from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.values import (
    ALWAYS,
    BucketInfo,
    Conditions,
    EnvironmentKey,
    ObjectVersion,
    Span,
    WrittenFields,
)
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.directory.purges import Purges
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.disk.digests import manifest_of
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.brain.objects.open_object import OpenObject
from edgecache.brain.origins.catalog import Catalog
from edgecache.brain.origins.open_origins import Origins
from edgecache.brain.stores.managed import ManagedStore
from edgecache.brain.stores.reachable_stores import Stores
from edgecache.brain.stores.upload_parts import UploadParts
from edgecache.brain.stores.upload_parts_limit import UploadPartsLimit
from edgecache.brain.upkeep.eviction import sweep
from edgecache.brain.upkeep.garbage_collection import GarbageCollector
from tests.database_client import DatabaseClient

ALICE = EnvironmentKey(1, 11)
CHARLIE = EnvironmentKey(2, 21)
MIB = 2**20
PLAIN = WrittenFields()
PATIENCE_S = 20.0


@dataclass
class Brain:
    """The core of one brain. kept: the versions that replication was notified of."""

    id: UUID
    database: BrainDatabase
    coherence: Coherence
    directory: Directory
    data_directory: DataDirectory
    origins: Origins
    catalog: Catalog
    objects: ObjectCache
    purges: Purges
    buckets: Buckets
    garbage_collector: GarbageCollector
    stores: Stores
    managed: ManagedStore
    upload_parts: UploadParts
    kept: list[ObjectVersion] = field(default_factory=list)

    async def put(
        self,
        bucket: BucketInfo,
        key: str,
        data: bytes,
        fields: WrittenFields = PLAIN,
        *,
        conditions: Conditions = ALWAYS,
    ) -> ObjectVersion:
        """Write an object."""
        receiver = self.data_directory.receive()
        await receiver.write(data)
        staged = await receiver.finish()
        return await self.objects.put(bucket, key, staged, fields, conditions=conditions)

    async def get(self, bucket: BucketInfo, key: str, span: Span | None = None) -> bytes:
        """Read an object."""
        return await read(await self.objects.open(bucket, key), span)

    async def sweep(self) -> int:
        """Remove files that nothing needs; return their number."""
        return await sweep(self.data_directory, self.database)

    async def bucket(self, name: str = "docs", tenant: EnvironmentKey = ALICE) -> BucketInfo:
        """Create a bucket with the built-in origin."""
        return await self.buckets.create(tenant, name)

    async def origin_bucket(
        self,
        kind: str,
        config: dict[str, str],
        secret: dict[str, str] | None = None,
        *,
        name: str = "docs",
        prefix: str = "",
        tenant: EnvironmentKey = ALICE,
    ) -> BucketInfo:
        """Create a bucket with an external origin."""
        origin = await self.catalog.create(tenant, f"{name}-origin", kind, config, secret)
        return await self.buckets.create(tenant, name, origin_id=origin.id, origin_prefix=prefix)


def buffered(brain: Brain, data: bytes, tenant: EnvironmentKey = ALICE) -> BufferedBody:
    """Return a body in memory."""
    release = brain.data_directory.reserve(tenant.organization_id, len(data))
    assert release is not None
    return BufferedBody(data, manifest_of(data), release)


async def read(opened: OpenObject, span: Span | None = None) -> bytes:
    """Read a body to its end."""
    return b"".join([piece async for piece in opened.body(span)])


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE_S
    for _ in iter(int, 1):
        if condition():
            return
        assert time.monotonic() < deadline, "it never came to pass"
        await asyncio.sleep(0.002)


def stored_files(data_dir: Path, kind: str = "objects") -> list[Path]:
    """Return the files of the store in a data directory. kind: "objects" or "parts"."""
    return sorted((data_dir / "objects").glob(f"*/*/*/{kind}/*/*"))


async def settled(brain: Brain) -> None:
    """Wait until every fetch has ended."""
    await until(lambda: not brain.objects.singleflight.is_busy)


@contextlib.asynccontextmanager
async def running(url: str, root: Path, **options: Any) -> AsyncIterator[Brain]:
    """Yield a brain that stops at the end of the block."""
    brain = assemble(url, root, **options)
    await brain.database.start()
    await brain.data_directory.start()
    await brain.coherence.start()
    try:
        await brain.stores.start()
        yield brain
    finally:
        await brain.objects.stop()
        await brain.managed.stop()
        await brain.purges.stop()
        await brain.garbage_collector.stop()
        await brain.stores.stop()
        await brain.origins.stop()
        await brain.coherence.stop()
        await brain.data_directory.stop()
        await brain.database.stop()


def assemble(
    url: str,
    root: Path,
    *,
    allows_private: bool = True,
    limit_bytes: int = 512 * MIB,
    objects: int = 256,
    index_bytes: int = 64 * MIB,
    stall_timeout_s: float = 5.0,
    trust: Path | None = None,
    stores: Sequence[StoreSettings] = (StoreSettings(),),
) -> Brain:
    """Create a brain; it is not started."""
    brain_id = uuid7()
    database = BrainDatabase(url, max_connections=10)
    coherence = Coherence(database, brain_id)
    directory = Directory(database, coherence, index_bytes=index_bytes)
    data_directory = DataDirectory(root, limit_bytes=limit_bytes)
    origins = Origins(
        database,
        coherence,
        data_directory,
        allows_private=allows_private,
        stall_timeout_s=stall_timeout_s,
        trust=trust,
    )
    kept: list[ObjectVersion] = []
    reached = Stores(database, coherence, root, stores, threads=data_directory.threads)
    managed = ManagedStore(
        database, data_directory, reached, on_restored=lambda _bucket, found: kept.append(found)
    )
    made = ObjectCache(
        database,
        directory,
        data_directory,
        origins,
        managed,
        brain_id=brain_id,
        limit=objects,
        on_stored=lambda _bucket, found: kept.append(found),
        may_replicate=lambda _bucket: True,
    )
    purges = Purges(database, coherence)
    return Brain(
        id=brain_id,
        database=database,
        coherence=coherence,
        directory=directory,
        data_directory=data_directory,
        origins=origins,
        catalog=Catalog(database, coherence, allows_private=allows_private),
        objects=made,
        purges=purges,
        buckets=Buckets(database, coherence),
        garbage_collector=GarbageCollector(
            database, coherence, data_directory, purges, made.writes, reached
        ),
        stores=reached,
        managed=managed,
        upload_parts=UploadParts(database, data_directory, reached, UploadPartsLimit(database)),
        kept=kept,
    )


class Rows(DatabaseClient):
    """The tables, as a client_of_database sees them."""

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        """Return rows."""
        return self.execute(sql, params).fetchall()

    def run(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self.execute(sql, params)

    def value(self, sql: str, params: Sequence[Any] = ()) -> Any:
        """Return one value."""
        return self.all(sql, params)[0][0]

    def count(self, table: str) -> int:
        """Count the rows of one of the brain's tables."""
        return int(self.value("SELECT count(*) FROM brain_" + table))  # noqa: S608 - the tests' own

    def node(self, node_id: UUID, *, organization_id: int | None = None) -> UUID:
        """Register a worker."""
        self.run(
            "INSERT INTO brain_node (id, organization_id, endpoint, region, capacity_bytes, status,"
            " secret_hash) VALUES (%s, %s, %s, 'eu', 1000000, 'active', '')",
            [node_id, organization_id, f"http://{node_id}"],
        )
        return node_id

    def cut(self, application: str) -> int:
        """Terminate the connections of an application name; return their number."""
        return len(
            self.all(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = %s AND datname = current_database()",
                [application],
            )
        )
