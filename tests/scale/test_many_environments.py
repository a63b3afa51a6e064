"""Many environments on one cluster, and many on one that falls silent beside another."""

import os
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from edgecache.brain.conf.stores import StoreSettings
from operations.embedded.throwaway import throwaway_cluster
from sqlgateway.models import Database
from tests.commands import facts
from tests.operations.backup.keys import Keys
from tests.processes import children_of
from tests.scale.figures import Figures
from tests.scale.tenants import (
    Asker,
    Tenant,
    answers_of,
    asking,
    p95_ms,
    provision,
    reader,
    tenants,
    window,
)
from tests.waiting import wait_until
from tests.web_process import Web, web_process

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TITLE: Final = "Environments on one cluster"
ENVIRONMENTS: Final = 300
PROVISIONED_MS: Final = 250
BACKUP_S: Final = 60
BUSY: Final = 75
OTHERS: Final = 10
BUSY_EVERY_S: Final = 1.0
OTHERS_EVERY_S: Final = 0.2
# Answers that each of the others gets while the cluster answers, and while it does not: about 12
# seconds, and 45, which is longer than what has begun waits for it.
QUIET: Final = 30
SILENT: Final = (30, 200)
RECOVERY_S: Final = 10.0


def test_300_environments_are_provisioned_and_backed_up(
    tmp_path: Path, settings: Settings, figures: Figures
) -> None:
    chosen = tenants(ENVIRONMENTS, "many")
    with web_process(tmp_path) as web:
        times = provision(web, chosen)
    mean, median = statistics.mean(times), statistics.median(times)
    figures.add(
        TITLE,
        f"the first statement of {ENVIRONMENTS} environments, one after the other",
        f"median at most {PROVISIONED_MS} ms",
        f"median {median:.0f} ms, mean {mean:.0f} ms",
    )
    assert Database.objects.filter(state=Database.State.ACTIVE).count() == ENVIRONMENTS
    assert median <= PROVISIONED_MS

    keys, store = Keys(tmp_path), tmp_path / "store"
    store.mkdir()
    settings.DATA_DIR = tmp_path / "data"
    settings.BRAIN = replace(settings.BRAIN, data_dir=tmp_path / "data" / "brain")
    settings.BACKUP = replace(
        settings.BACKUP, store=StoreSettings(url=f"file://{store}"), recipients=(keys.public,)
    )
    began = time.monotonic()
    made = facts("backup")
    took_s = time.monotonic() - began
    figures.add(
        TITLE,
        f"`manage.py backup` of {ENVIRONMENTS} environments of 1,000 rows",
        f"at most {BACKUP_S} s",
        f"{took_s:.0f} s",
    )
    (listed,) = facts("backup", "--list")["backups"]
    assert facts("backup", "--verify")["verified"] is True
    assert (listed["id"], listed["environments"]) == (made["id"], ENVIRONMENTS)
    assert [made[name] for name in ("not_dumped", "not_restorable", "left_out")] == [[], [], []]
    assert took_s <= BACKUP_S


def test_a_silent_cluster_slows_no_other(tmp_path: Path, figures: Figures) -> None:
    url_file = tmp_path / "url"
    with throwaway_cluster(os.environ) as url, web_process(tmp_path) as web:
        others = tenants(OTHERS, "other")
        provision(web, others)
        # Of so large a cluster the smallest share is used, so that all of these are placed on it.
        url_file.write_text(url)
        capacity = ("--capacity", "1000000")
        facts("addcluster", "silent", "--url-file", str(url_file), "--accept-findings", *capacity)
        busy = tenants(BUSY, "busy")
        provision(web, busy)
        assert Database.objects.filter(cluster__name="silent").count() == BUSY
        _measure(web, url, busy=busy, others=others, figures=figures)


def _measure(
    web: Web, url: str, *, busy: list[Tenant], others: list[Tenant], figures: Figures
) -> None:
    crowd = [reader(each, every_s=BUSY_EVERY_S) for each in busy]
    few = [reader(each, every_s=OTHERS_EVERY_S) for each in others]
    quiet, silent, recoveries = [], [], []
    with asking(web, [*crowd, *few]):
        for answers in SILENT:
            quiet += window(few, QUIET)
            with frozen(url):
                silent += window(few, answers)
            recoveries.append(_recovery_s(crowd))
        quiet += window(few, QUIET)
    before, during = p95_ms(quiet), p95_ms(silent)
    figures.add(
        TITLE,
        f"p95 of another cluster's environments, {BUSY} busy ones' cluster silent",
        f"at most twice {before:.1f} ms, which it is otherwise",
        f"{during:.1f} ms",
    )
    figures.add(
        TITLE,
        f"the {BUSY} are answered again after the silence",
        f"at most {RECOVERY_S:.0f} s",
        f"{max(recoveries):.1f} s",
    )
    assert {status for status, _ in answers_of(few)} == {200}, answers_of(few)
    assert {status for status, _ in answers_of(crowd)} <= {200, 429, 503}, answers_of(crowd)
    assert during <= 2 * before
    assert max(recoveries) <= RECOVERY_S


def _recovery_s(askers: list[Asker]) -> float:
    """Return how long it takes until each has succeeded with a request from now on."""
    began = time.monotonic()
    wait_until(lambda: all(each.successes_since(began) for each in askers))
    return time.monotonic() - began


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Stop all processes of a server: connections stay open, and nothing is answered."""
    query = parse_qs(urlsplit(url).query)
    lock = Path(query["host"][0]) / f".s.PGSQL.{query['port'][0]}.lock"
    main = int(lock.read_text().split()[0])
    stopped = [main]
    os.kill(main, signal.SIGSTOP)
    try:
        for child in children_of(main):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
                stopped.append(child)
        yield
    finally:
        for pid in reversed(stopped):
            os.kill(pid, signal.SIGCONT)
