"""The brain's core without HTTP: fetches compared with their origin, a stampede, a large purge.

``python -m operations.embedded exec -- python -m benchmarks.cache.cache_core [OBJECTS]`` creates
another database on the server of DATABASE_URL, and fills it.
"""

import asyncio
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import django
import psycopg
from psycopg import sql

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
django.setup()

from django.conf import settings  # noqa: E402 - after django.setup()

from benchmarks.cache.cache_index import MIB, resident  # noqa: E402 - after django.setup()
from common.ids import uuid7  # noqa: E402 - after django.setup()
from edgecache.brain.core.values import (  # noqa: E402 - after django.setup()
    BucketInfo,
    EnvironmentKey,
    WrittenFields,
)
from edgecache.brain.db.coherence import Coherence  # noqa: E402 - after django.setup()
from edgecache.brain.db.database import BrainDatabase  # noqa: E402 - after django.setup()
from edgecache.brain.directory.buckets import Buckets  # noqa: E402 - after django.setup()
from edgecache.brain.directory.purges import Purges  # noqa: E402 - after django.setup()
from edgecache.brain.directory.versions import Directory  # noqa: E402 - after django.setup()
from edgecache.brain.disk.data_directory import DataDirectory  # noqa: E402 - after django.setup()
from edgecache.brain.objects.object_cache import ObjectCache  # noqa: E402 - after django.setup()
from edgecache.brain.origins.catalog import Catalog  # noqa: E402 - after django.setup()
from edgecache.brain.origins.open_origins import Origins  # noqa: E402 - after django.setup()
from edgecache.brain.stores.managed import ManagedStore  # noqa: E402 - after django.setup()
from edgecache.brain.stores.reachable_stores import Stores  # noqa: E402 - after django.setup()

TENANT: Final = EnvironmentKey(1, 1)
BODY_BYTES: Final = 100 * MIB
ROUNDS: Final = 5
ASKERS: Final = 1000
SMALL_BYTES: Final = 64 * 1024
OBJECTS: Final = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
PURGED: Final = 100_000
PUTS: Final = 300
DATABASE: Final = "brain_benchmark"


@dataclass
class Core:
    """One brain's core and a bucket of each kind."""

    database: BrainDatabase
    coherence: Coherence
    directory: Directory
    data_directory: DataDirectory
    objects: ObjectCache
    purges: Purges
    built_in: BucketInfo
    external: BucketInfo


async def main() -> None:
    """Run all measurements in order."""
    origin = await asyncio.start_server(answer, "127.0.0.1", 0, limit=MIB)
    port = origin.sockets[0].getsockname()[1]
    url = make_database()
    with tempfile.TemporaryDirectory() as folder:
        async with core(url, Path(folder), port) as brain:
            await puts(brain)
            await fill(brain, port)
            await stampede(brain)
            await purge(brain)
            started = time.perf_counter()
        async with core(url, Path(folder), port, is_new=False) as brain:
            await brain.objects.open(brain.external, "after")
            print(
                f"start over {OBJECTS:,} objects to the first answer:"
                f" {time.perf_counter() - started:.2f} s"
            )
    origin.close()


async def puts(brain: Core) -> None:
    """Time small writes to the built-in origin, one after another and concurrently."""
    for width in (1, 16):
        gate = asyncio.Semaphore(width)

        async def put(number: int, gate: asyncio.Semaphore = gate) -> None:
            async with gate:
                receiver = brain.data_directory.receive()
                await receiver.write(b"%d" % number * 200)
                staged = await receiver.finish()
                await brain.objects.put(brain.built_in, f"put/{number}", staged, WrittenFields())

        started = time.perf_counter()
        await asyncio.gather(*(put(number) for number in range(PUTS)))
        print(f"PUT of 1 KiB, {width} at once: {PUTS / (time.perf_counter() - started):.0f}/s")


async def fill(brain: Core, port: int) -> None:
    """Measure the first byte of a large fetch, compared with the origin's, and its memory."""
    direct, through, rates, grown = [], [], [], []
    for number in range(ROUNDS):
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await reader.read(1)
        direct.append(time.perf_counter() - started)
        writer.transport.abort()
        before = peak = resident()
        started = time.perf_counter()
        opened = await brain.objects.open(brain.external, f"large{number}")
        first, size = 0.0, 0
        async for piece in opened.body():
            first = first or time.perf_counter() - started
            size += len(piece)
            peak = max(peak, resident())
        rates.append(size / MIB / (time.perf_counter() - started))
        through.append(first)
        grown.append(peak - before)
        await settled(brain)
    lead = statistics.median(through) - statistics.median(direct)
    print(
        f"fill of {BODY_BYTES // MIB} MiB: first byte {lead * 1e3:.1f} ms after the origin's"
        f" ({statistics.median(direct) * 1e3:.1f} ms), {statistics.median(rates):.0f} MiB/s,"
        f" {max(grown) / MIB:.0f} MiB of memory"
    )


async def stampede(brain: Core) -> None:
    """Measure many concurrent requests for one cold key."""
    ASKED.clear()
    started = time.perf_counter()

    async def ask() -> int:
        opened = await brain.objects.open(brain.external, "cold")
        return sum([len(piece) async for piece in opened.body()])

    sizes = await asyncio.gather(*(ask() for _ in range(ASKERS)))
    print(
        f"{ASKERS} askers for a cold key of {SMALL_BYTES // 1024} KiB:"
        f" {len(ASKED)} fetch, {time.perf_counter() - started:.2f} s,"
        f" {'whole' if set(sizes) == {SMALL_BYTES} else 'BROKEN'}"
    )
    await settled(brain)


async def purge(brain: Core) -> None:
    """Measure a purge of a tenth of a million objects."""
    print(f"making {OBJECTS:,} objects, {PURGED:,} under the prefix ...")
    await asyncio.to_thread(make_objects, brain.database.url, brain.built_in.id)
    for number in range(2000):
        await brain.directory.find(brain.built_in.id, f"purge/{number:07}")
    started = time.perf_counter()
    purging = asyncio.create_task(brain.purges.purge(TENANT, prefix="docs/purge/"))
    worst, last = 0.0, started
    visible = 0.0
    while not purging.done():
        found = await brain.directory.find(brain.built_in.id, "purge/0000007")
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
        if found is None and not visible:
            visible = now - started
        await asyncio.sleep(0.002)
    result = await purging
    print(
        f"purge of {result.objects_purged:,} by prefix: gone after {visible * 1e3:.0f} ms, counted"
        f" after {time.perf_counter() - started:.2f} s ({result.bytes_freed:,} bytes on"
        f" {result.nodes_affected} nodes); no answer waited more than {worst * 1e3:.0f} ms"
    )


@asynccontextmanager
async def core(url: str, folder: Path, port: int, *, is_new: bool = True) -> AsyncIterator[Core]:
    """Return a running core."""
    brain_id = uuid7()
    database = BrainDatabase(url, max_connections=16)
    coherence = Coherence(database, brain_id)
    directory = Directory(database, coherence, index_bytes=2**30)
    data_directory = DataDirectory(folder, limit_bytes=4 * 2**30)
    origins = Origins(database, coherence, data_directory, allows_private=True)
    stores = Stores(database, coherence, folder)
    managed = ManagedStore(
        database, data_directory, stores, on_restored=lambda _bucket, _version: None
    )
    objects = ObjectCache(
        database,
        directory,
        data_directory,
        origins,
        managed,
        brain_id=brain_id,
        on_stored=lambda _bucket, _version: None,
        may_replicate=lambda _bucket: False,
    )
    purges = Purges(database, coherence)
    buckets = Buckets(database, coherence)
    catalog = Catalog(database, coherence, allows_private=True)
    await database.start()
    await data_directory.start()
    await coherence.start()
    await stores.start()
    if is_new:
        made = await catalog.create(TENANT, "o", "http", {"url": f"http://127.0.0.1:{port}"}, None)
        await buckets.create(TENANT, "docs")
        await buckets.create(TENANT, "far", origin_id=made.id)
    external, built_in = sorted(await buckets.list(TENANT), key=lambda row: row.name == "docs")
    yield Core(database, coherence, directory, data_directory, objects, purges, built_in, external)
    await objects.stop()
    await purges.stop()
    await origins.stop()
    await stores.stop()
    await coherence.stop()
    await data_directory.stop()
    await database.stop()


async def settled(brain: Core) -> None:
    """Wait until fetched objects are stored."""
    for _ in iter(int, 1):
        if not brain.objects.singleflight.is_busy:
            return
        await asyncio.sleep(0.01)


ASKED: list[bytes] = []


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve the origin's responses."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            ASKED.append(head)
            size = BODY_BYTES if b" /large" in head else SMALL_BYTES
            writer.write(b'HTTP/1.1 200 OK\r\nETag: "v"\r\nContent-Length: %d\r\n\r\n' % size)
            piece = b"x" * SMALL_BYTES
            for _ in range(size // SMALL_BYTES):
                writer.write(piece)
                await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        writer.close()


def make_database() -> str:
    """Yield the URL of an empty database with the brain's tables."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - with what it is needed for

    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        name = sql.Identifier(DATABASE)
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    url = urlsplit(settings.DATABASE_URL)._replace(path=f"/{DATABASE}").geturl()
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "brain", "-v0"],
        check=True,
        env=os.environ | {"DATABASE_URL": url},
    )
    return url


def make_objects(url: str, bucket_id: int) -> None:
    """Write rows of many objects, each on two of ten nodes, as if they had been fetched."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO brain_node (id, endpoint, region, capacity_bytes, status, secret_hash)"
            " SELECT gen_random_uuid(), 'http://' || n, 'eu', 1, 'active', ''"
            " FROM generate_series(1, 10) n"
        )
        connection.execute(
            "INSERT INTO brain_blob (sha256, size, md5, crc32, chunks)"
            " SELECT sha256(n::text::bytea), 1000 + n, '', 0, '' FROM generate_series(1, %s) n",
            [OBJECTS],
        )
        connection.execute(
            "INSERT INTO brain_cachedobject (bucket_id, key, blob_id, etag, content_type, headers,"
            " metadata, checksums, parts, last_modified, generation, http)"
            " SELECT %s, CASE WHEN n <= %s THEN 'purge/' ELSE 'kept/' END || lpad(n::text, 7, '0'),"
            " sha256(n::text::bytea), md5(n::text), 'image/webp', '{}', '{}', '{}', '[]', now(),"
            " nextval('brain_generation'), '{}' FROM generate_series(1, %s) n",
            [bucket_id, PURGED, OBJECTS],
        )
        connection.execute(
            "WITH node AS (SELECT id, row_number() OVER (ORDER BY id) AS place FROM brain_node)"
            " INSERT INTO brain_location (blob_id, node_id) SELECT sha256(n::text::bytea), node.id"
            " FROM generate_series(1, %s) n JOIN node"
            " ON node.place IN (1 + n %% 10, 1 + (n + 3) %% 10)",
            [OBJECTS],
        )
        connection.execute("VACUUM ANALYZE")


def fingerprint() -> str:
    """Return the hash of the measured sources, which identifies a run."""
    digest = hashlib.sha256()
    for path in sorted(Path("edgecache/brain").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    print(f"sources {fingerprint()}")
    asyncio.run(main())
