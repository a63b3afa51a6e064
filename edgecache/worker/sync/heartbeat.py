"""Heartbeats: the worker reports its state, and gets the time, the keys and announced work."""

import asyncio
import logging
import os
import random
import time
from typing import Final

from edgecache.protocol.heartbeats import Heartbeat, HeartbeatAnswer, Problem
from edgecache.protocol.names import worker_path
from edgecache.worker.brain_calls import BrainCallError, CredentialRefused, NodeRemoved
from edgecache.worker.node import CacheWorker, Status

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 0.5
# A node is back this long after the brain is.
MAX_WAIT_S: Final = 5.0


class Backoff:
    """Waits that double up to five seconds, each at random below its limit."""

    def __init__(self) -> None:
        self._limit_s = FIRST_WAIT_S

    def reset(self) -> None:
        self._limit_s = FIRST_WAIT_S

    def next_s(self) -> float:
        """Return the next wait: half its limit, and up to the other half."""
        limit, self._limit_s = self._limit_s, min(MAX_WAIT_S, 2 * self._limit_s)
        return limit * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides nothing


class Load:
    """The share of this machine's processors that the worker used since the last call."""

    def __init__(self) -> None:
        self._at, self._used = time.monotonic(), time.process_time()

    def since_last(self) -> float:
        at, used = time.monotonic(), time.process_time()
        processors = len(os.sched_getaffinity(0))
        share = (used - self._used) / max(at - self._at, 1e-6) / processors
        self._at, self._used = at, used
        return round(min(1.0, max(0.0, share)), 4)


async def heartbeats(node: CacheWorker) -> None:
    """Beat until the node is removed; serve on while the brain is unreachable."""
    backoff, load = Backoff(), Load()
    while node.status is not Status.REMOVED:
        wait_s = await _beat_or_wait(node, load, backoff)
        await asyncio.sleep(wait_s)


async def beat(node: CacheWorker, load: float) -> HeartbeatAnswer:
    """Send a heartbeat and process the answer. Raises BrainCallError."""
    async with node.talking:
        message = _state(node, load)
        sent = node.clock.tick()
        path = worker_path(node.options.node_id, "heartbeat")
        answer = await node.brain.call("POST", path, HeartbeatAnswer, message)
    node.clock.learn(answer.now, sent=sent, received=node.clock.tick())
    node.verifier.trust(answer.keys)
    node.problems.drop_reported(message.problems)
    node.counters.add("heartbeats")
    if node.status is Status.STARTING:
        node.status = Status.SERVING
    node.wants_inventory = node.wants_inventory or answer.wants_inventory
    if answer.jobs:
        node.jobs_wait.set()
    return answer


async def _beat_or_wait(node: CacheWorker, load: Load, backoff: Backoff) -> float:
    """Beat; return the seconds until the next one."""
    try:
        answer = await beat(node, load.since_last())
    except NodeRemoved:
        node.remove()
        return 0.0
    except BrainCallError as error:
        node.counters.add("heartbeats_failed")
        wait_s = backoff.next_s()
        _log_absence(node, error, wait_s)
        return wait_s
    backoff.reset()
    if not node.is_brain_up:
        log.info("brain_up", extra={"node_status": answer.status})
    node.is_brain_up = True
    node.brain_answered.set()
    return answer.interval_s


def _log_absence(node: CacheWorker, error: Exception, wait_s: float) -> None:
    if isinstance(error, CredentialRefused):
        log.error("credential_refused", extra={"retry_s": round(wait_s, 1)})
    elif node.is_brain_up or node.status is Status.STARTING:
        log.warning("brain_away", extra={"reason": str(error), "retry_s": round(wait_s, 1)})
    node.is_brain_up = False


def _state(node: CacheWorker, load: float) -> Heartbeat:
    held = node.store.held()
    problems = node.problems.now()
    if node.status is Status.DRAINING:
        problems = (*problems, str(Problem.DRAINING))
    return Heartbeat(
        incarnation=node.incarnation,
        sequence=node.next_sequence(),
        used_bytes=held.used_bytes,
        object_count=held.objects,
        capacity_bytes=node.options.capacity_bytes,
        evictions=held.evictions,
        load=load,
        endpoint=node.options.endpoint,
        problems=problems,
    )
