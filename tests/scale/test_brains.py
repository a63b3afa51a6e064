"""Three brains: restarted, killed, stopped, cut off from their database or from their store."""

import hashlib
import http.client
import itertools
import signal
import threading
import time
from collections.abc import Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from tests.edgecache.balancer import is_ready
from tests.edgecache.brain.restarts.test_restarts_under_load import (
    REQUESTS,
    answered,
    clients,
)
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect
from tests.edgecache.writers import Writers, check, tenant
from tests.load import load
from tests.scale.figures import Figures
from tests.scale.fresh_reads import Read, Readers, Watched, failed
from tests.scale.three_brains import (
    LARGE,
    PUBLIC,
    SIGNED,
    SMALL,
    START_S,
    ThreeBrains,
    three_brains,
)
from tests.waiting import wait_until

TITLE = "Three brains over one store"
READS = 5000
# What a reader may start after an event, and what a writer may wait.
VOUCHED_S = 2.0
WRITER_S = 8.0
PAUSE_S = 10.0
# Between the changes of an object.
CHANGE_S = 0.2
REFUSALS = {500, 502, 503, 504}


@pytest.fixture(scope="module")
def running() -> Iterator[ThreeBrains]:
    """Return the brains; each test leaves them all running."""
    with three_brains() as made:
        yield made


@pytest.fixture
def brains(running: ThreeBrains) -> ThreeBrains:
    """Return the brains when all are ready."""
    running.wait_until_ready()
    return running


@contextmanager
def writing(brains: ThreeBrains) -> Iterator[Writers]:
    """Yield writers at the balancer; nothing that they were acknowledged is lost at the end."""
    keys, client = tenant(brains.front)
    client.close()
    made = Writers(keys, brains.front.url, count=4, sizes=(1000, 100_000), pause_s=0.1, do_all=True)
    with made as writers:
        writers.wait_for(20)
        yield writers
        writers.wait_for_each()
    assert writers.refused <= REFUSALS
    brains.wait_until_ready()
    readers = [connect(keys, url) for url in brains.urls]
    check(writers, *readers)
    for each in readers:
        each.close()


def test_no_read_is_stale_after_a_purge_or_an_overwrite(
    brains: ThreeBrains, figures: Figures
) -> None:
    objects = brains.objects()
    is_over = threading.Event()

    def change(watched: Watched) -> None:
        for through in itertools.cycle(brains.brains):
            if is_over.wait(CHANGE_S):
                return
            watched.change(through)

    with Readers(objects, brains.urls) as readers, ThreadPoolExecutor(len(objects)) as pool:
        changing = [pool.submit(change, watched) for watched in objects]
        try:
            while min(len(of_kind(readers.reads, kind)) for kind in (SIGNED, PUBLIC)) < READS:
                readers.wait_for(100)
        finally:
            is_over.set()
        for each in changing:
            each.result()
    for kind, changes in ((SIGNED, "overwrites"), (PUBLIC, "purges")):
        reads = of_kind(readers.reads, kind)
        stale = [read for read in reads if read.is_stale]
        count = sum(each.changes for each in objects if each.kind == kind)
        what = f"Stale {kind} while {count} {changes} go through all brains"
        figures.add(TITLE, what, "0 of 5,000", ratio(stale, reads))
        assert stale == []
    assert failed(readers.reads) == []


def test_a_restart_of_each_brain_fails_no_request(brains: ThreeBrains, figures: Figures) -> None:
    front = brains.front
    with (
        writing(brains) as writers,
        clients(front, front.tenant()) as callers,
        load(callers) as seen,
    ):
        for brain in brains.brains:
            seen.goes_on()
            brain.brain.terminate()
            assert brain.brain.wait(20) == 0
            brain.restart(0)
            wait_until(partial(is_ready, brain), timeout_s=START_S)
        wait_until(lambda: seen.failures or answered(seen) > REQUESTS, timeout_s=START_S)
    count, written = answered(seen), writers.done + writers.failures
    what = "Failed requests while each brain is restarted"
    figures.add(TITLE, what, "0 of 5,000", f"{len(seen.failures)} of {count:,}")
    what = "Writes of more clients, which never repeat one: failed meanwhile"
    figures.add(TITLE, what, "", f"{writers.failures} of {written:,}")
    assert seen.failures == []


def test_a_killed_brain_costs_only_its_requests(brains: ThreeBrains, figures: Figures) -> None:
    objects, (killed, *others) = brains.objects(), brains.brains
    with (
        writing(brains) as writers,
        Readers(objects, brains.urls, pause_s=0.01) as readers,
    ):
        readers.wait_for(200)
        began = time.monotonic()
        killed.kill(0)
        for watched in objects:
            watched.change(others[0])
        writers.wait_for_each()
        readers.wait_for(200)
        killed.restart(0)
        brains.wait_until_ready()
        writers.wait_for_each()
        longest_s = writers.longest_pause_s(began)
    judge("A brain killed by kill -9", figures, brains, killed, readers, longest_s)


def test_a_stopped_brain_wakes_without_old_objects(brains: ThreeBrains, figures: Figures) -> None:
    objects, (first, stopped, other) = brains.objects(), brains.brains
    with writing(brains) as writers, Readers(objects, brains.urls, pause_s=0.01) as readers:
        readers.wait_for(400)
        began = time.monotonic()
        stopped.brain.send_signal(signal.SIGSTOP)
        try:
            for watched in objects:
                watched.change(other)
            changed_s = time.monotonic() - began
            # They wait in the stopped brain's socket.
            with Readers(objects, [stopped.url], count=10) as late:
                wait_until(lambda: time.monotonic() > began + PAUSE_S)
                woken = time.monotonic()
                stopped.brain.send_signal(signal.SIGCONT)
                for watched in objects:
                    watched.change(first)
                late.wait_for(500)
        finally:
            stopped.brain.send_signal(signal.SIGCONT)
        brains.wait_until_ready()
        writers.wait_for_each()
        longest_s = writers.longest_pause_s(began)
    event = f"A brain stopped by SIGSTOP for {PAUSE_S:.0f} s"
    judge(event, figures, brains, stopped, readers, longest_s)
    after = [read for read in late.reads if read.ended > woken]
    what = f"{event}: stale reads there, from the first answer after it"
    figures.add(TITLE, what, "0", ratio(late.stale, after))
    what = f"{event}: changes of five objects through another"
    figures.add(TITLE, what, "", f"{changed_s:.1f} s")
    assert after
    assert late.stale == []


def test_a_brain_without_its_database_serves_nothing_old(
    brains: ThreeBrains, figures: Figures
) -> None:
    objects, (other, _, alone) = brains.objects(), brains.brains
    with (
        writing(brains) as writers,
        Readers(objects, brains.urls, pause_s=0.01) as readers,
        Readers(objects, [alone.url], count=12, pause_s=0.05) as asking,
    ):
        readers.wait_for(200)
        asking.wait_for(200)
        began = time.monotonic()
        brains.line.is_silent = True
        try:
            for watched in objects:
                watched.change(other)
            changed_s = time.monotonic() - began
            wait_until(lambda: time.monotonic() > began + PAUSE_S)
        finally:
            # As TCP does when packets pass again after a long time.
            brains.line.cut()
            brains.line.is_silent = False
        healed = time.monotonic()
        wait_until(
            lambda: any(not failed([read]) and read.began > healed for read in asking.reads),
            timeout_s=START_S,
        )
        brains.wait_until_ready()
        writers.wait_for_each()
        longest_s = writers.longest_pause_s(began)
    event = f"A brain without its database for {PAUSE_S:.0f} s"
    judge(event, figures, brains, alone, readers, longest_s)
    cut_off = [read for read in asking.reads if began <= read.began < healed]
    old_s = [
        read.began - began
        for read in cut_off
        if not failed([read]) and read.version < read.watched.begun
    ]
    refused_s = [read.ended - read.began for read in failed(cut_off)]
    what = f"{event}: the last read there that gets old bytes, after the cut"
    figures.add(TITLE, what, f"{VOUCHED_S:.0f} s", f"{max(old_s, default=0.0):.1f} s")
    what = f"{event}: 503 there, and the longest time that one takes"
    figures.add(TITLE, what, "", f"{len(refused_s)}, {max(refused_s):.1f} s")
    what = f"{event}: changes of five objects through another"
    figures.add(TITLE, what, "", f"{changed_s:.1f} s")
    assert {read.status for read in failed(cut_off)} == {http.client.SERVICE_UNAVAILABLE}
    assert asking.stale == []
    assert max(old_s, default=0.0) < VOUCHED_S


def test_reads_in_memory_go_on_without_the_store(brains: ThreeBrains, figures: Figures) -> None:
    objects = brains.objects()
    keys, client = tenant(brains.front)
    first, second, _ = brains.brains
    signed = [Signer(keys, each.url) for each in (first, second)]
    with writing(brains) as writers, Readers(objects, brains.urls, pause_s=0.01) as readers:
        assert signed[0].send("PUT", "/docs/unread", b"x" * LARGE * 10).status == 200
        wait_until(lambda: all(has_copies(brain, objects) for brain in brains.brains))
        readers.wait_for(100)
        began = time.monotonic()
        brains.rados.kill_gateway()
        try:
            refused = signed[1].send("GET", "/docs/unread")
            assert (refused.status, refused.code) == (503, "ServiceUnavailable")
            assert signed[1].send("PUT", "/docs/new", b"x" * LARGE * 10).status == 503
            assert signed[1].send("PUT", "/docs/small", b"x" * SMALL * 10).status == 200
            wait_until(lambda: time.monotonic() > began + PAUSE_S / 2)
            readers.wait_for(400)
        finally:
            brains.rados.start_gateway()
        back = time.monotonic()
        wait_until(lambda: signed[1].send("GET", "/docs/unread").status == 200)
        writers.wait_for_each()
        well_s = time.monotonic() - back
        brains.wait_until_ready()
    client.close()
    assert readers.stale == []
    away = [read for read in readers.reads if began <= read.began < back]
    at_balancer = [read for read in away if read.url == brains.front.url]
    at_brains = [read for read in away if read.url != brains.front.url]
    what = "Failed reads of what brains have, while the store is away"
    figures.add(TITLE, f"{what}: at the brains", "0", ratio(failed(at_brains), at_brains))
    figures.add(TITLE, f"{what}: at the balancer", "", ratio(failed(at_balancer), at_balancer))
    assert failed(at_brains) == []
    # It cuts what runs on a brain when it finds that this one has no store.
    assert len(failed(at_balancer)) <= len(brains.brains) * readers.count
    figures.add(
        TITLE, "All reads and writes succeed after the store is back", "", f"{well_s:.1f} s"
    )


def of_kind(reads: list[Read], kind: str) -> list[Read]:
    """Return the reads of some objects."""
    return [read for read in reads if read.watched.kind == kind]


def has_copies(brain: Cluster, objects: Sequence[Watched]) -> bool:
    """Return whether a brain has the bytes of all signed objects of the store on its disk."""
    blobs = brain.folder / "brain" / "blobs"
    digests = [
        hashlib.sha256(each.body).hexdigest()
        for each in objects
        if each.kind == SIGNED and each.digits == LARGE
    ]
    return all(any(blobs.glob(f"*/{digest}")) for digest in digests)


def ratio(some: Sized, all_of_them: Sized) -> str:
    """Return how many of how many."""
    return f"{len(some):,} of {len(all_of_them):,}"


def judge(
    event: str,
    figures: Figures,
    brains: ThreeBrains,
    victim: Cluster,
    readers: Readers,
    longest_s: float,
) -> None:
    """Check that no read was stale, that the other brains failed none, and the writers' pause."""
    reads = readers.of(brains.front.url)
    figures.add(TITLE, f"{event}: failed reads at the balancer", "", ratio(failed(reads), reads))
    what = f"{event}: the longest time without a success for a writer"
    figures.add(TITLE, what, f"{WRITER_S:.0f} s", f"{longest_s:.1f} s")
    assert readers.stale == []
    others = [brain.url for brain in brains.brains if brain is not victim]
    assert failed(readers.of(*others)) == []
    assert {read.status for read in failed(readers.reads)} <= {0, *REFUSALS}
    assert longest_s < WRITER_S
