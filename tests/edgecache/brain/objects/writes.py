"""Writes to the built-in origin, for tests: bodies in memory, concurrent, held or locked out."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from edgecache.brain.core.values import (
    ALWAYS,
    BucketInfo,
    Conditions,
    ObjectVersion,
    WrittenFields,
)
from tests.edgecache.brain.brains import Brain, Rows, buffered


async def put(
    brain: Brain,
    bucket: BucketInfo,
    key: str,
    data: bytes,
    *,
    conditions: Conditions = ALWAYS,
    metadata: dict[str, str] | None = None,
) -> ObjectVersion:
    """Write a body that is in memory."""
    body = buffered(brain, data, bucket.tenant)
    fields = WrittenFields(metadata=metadata or {})
    return await brain.objects.put(bucket, key, body, fields, conditions=conditions)


async def outcomes(*writes: Coroutine[Any, Any, Any]) -> list[object]:
    """Run writes concurrently; return their results and failures."""
    return list(await asyncio.gather(*writes, return_exceptions=True))


def kinds(found: list[object]) -> list[type]:
    """Return the types of some outcomes."""
    return [type(each) for each in found]


def is_tidy(brain: Brain) -> bool:
    """True if no temporary file and no reserved memory is left."""
    return not list(brain.data_directory.temp.iterdir()) and brain.data_directory.used_bytes == 0


@contextmanager
def locked(rows: Rows, bucket: BucketInfo) -> Iterator[None]:
    """Lock a bucket as a large purge does."""
    with psycopg.connect(rows.url) as connection:
        connection.execute("SELECT FROM brain_bucket WHERE id = %s FOR NO KEY UPDATE", [bucket.id])
        yield
