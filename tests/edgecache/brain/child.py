"""A brain in a separate process that takes commands line by line and can be killed.

``python -m tests.edgecache.brain.child URL ROOT`` reads one JSON object a line and answers with
one: ``{"do": "get" | "put" | "delete" | "purge" | "halt" | "round" | "lifecycle", …}``. ``halt``
names a function (``module:function``): before it runs next, the process says ``{"halted": …}`` and
waits for ever.
"""

import asyncio
import importlib
import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import uvloop

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.core.errors import BrainError
from edgecache.brain.upkeep.lifecycle import Lifecycle
from tests.edgecache.brain.brains import ALICE, PLAIN, Brain, buffered, running

# Settings are read from it when they are used; the brain uses no models.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")


async def main(url: str, root: str) -> None:
    """Run commands until the input ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    stores = [StoreSettings(**each) for each in json.loads(os.environ["TEST_STORES"])]
    async with running(url, Path(root), stores=stores) as brain:
        say({"ready": str(brain.id)})
        tasks = set()
        while line := await reader.readline():
            task = asyncio.create_task(obey(brain, json.loads(line)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def obey(brain: Brain, order: dict[str, Any]) -> None:
    """Run one command."""
    try:
        done = await perform(brain, order)
        say({"done": done} | ({"number": order["number"]} if "number" in order else {}))
    except BrainError as exc:
        say({"error": exc.code})


async def perform(brain: Brain, order: dict[str, Any]) -> Any:
    """Run one command and return its result."""
    if order["do"] == "halt":
        halt(order["at"])
        return None
    if order["do"] == "round":
        return await brain.garbage_collector.round()
    if order["do"] == "lifecycle":
        work = Lifecycle(brain.database, brain.coherence, brain.id)
        return await work.run(now=datetime.fromisoformat(order["now"]))
    if order["do"] == "purge":
        result = await brain.purges.purge(ALICE, prefix=order["prefix"])
        return result.objects_purged
    bucket = await brain.directory.bucket_by_id(order["bucket"])
    if order["do"] == "put":
        data = order["data"].encode()
        if bucket.origin_id is not None:
            return (await brain.put(bucket, order["key"], data)).etag
        found = await brain.objects.put(bucket, order["key"], buffered(brain, data), PLAIN)
        return found.etag
    if order["do"] == "delete":
        return await brain.objects.delete(bucket, [order["key"]])
    return (await brain.get(bucket, order["key"]))[:100].decode()


def halt(at: str) -> None:
    """Make a function report that it was called and never return."""
    module, _, path = at.partition(":")
    holder: Any = importlib.import_module(module)
    *names, last = path.split(".")
    for name in names:
        holder = getattr(holder, name)

    async def halted(*_args: object, **_options: object) -> None:
        say({"halted": at})
        await asyncio.Event().wait()

    setattr(holder, last, halted)


def say(what: dict[str, Any]) -> None:
    """Write one response line."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
