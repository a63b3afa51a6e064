"""The page on earnings: what it tries, from an operator's sign-up to what the node earned."""

import json
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.db import connection
from pytest_django import Settings

from tests.documents.blocks import ROOT
from tests.documents.conftest import Terminal
from tests.documents.scripts import script_of
from tests.edgecache.cluster import Cluster
from tests.edgecache.new_cluster import new_cluster
from tests.ports import free_port

pytestmark = pytest.mark.slow

PAGE, CAP = "docs/earnings.md", "spend-cap"
# In place of the page's `sleep`, so that no clock decides: it ends when the brain knows of a copy
# of each page at the node, and the next time when a read that the node served is written.
SLEEP = """#!{python}
import json, time
from pathlib import Path
import psycopg

COPIED = "SELECT count(*) >= %s FROM brain_location WHERE node_id = %s"
READ = "SELECT count(*) > 0 FROM brain_measurement WHERE %s > 0 AND node_id = %s AND hits > 0"
mark = Path("copied")
wanted = [len([*Path("docs").glob("*.md")]), json.loads(Path("node.json").read_text())["node_id"]]
with psycopg.connect("{brain}", autocommit=True) as database:
    while not database.execute(READ if mark.exists() else COPIED, wanted).fetchone()[0]:
        time.sleep(0.05)
mark.touch()
"""


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a brain of this test's own, whose only node will be the operator's.

    Beside nodes of the platform it is a matter of chance which node serves a read.
    """
    with new_cluster(tmp_path_factory, workers=0) as running:
        yield running


def test_the_command_that_caps_what_is_spent_works(terminal: Terminal) -> None:
    assert '"cap_cents":5000' in terminal.paste(
        script_of(PAGE, only=CAP), ZONAL_TOKEN=terminal.sign_up()
    ).replace(": ", ":")


def test_a_reader_s_node_earns_what_the_page_says(
    terminal: Terminal, cluster: Cluster, settings: Settings
) -> None:
    for name in ("docs", "manage.py"):
        (terminal.folder / name).symlink_to(ROOT / name)
    sleep = SLEEP.format(python=sys.executable, brain=cluster.database_url)
    programs = {"bin/sleep": sleep, ".venv/bin/python": f'#!/bin/sh\nexec {sys.executable} "$@"\n'}
    for name, text in programs.items():
        program = terminal.folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o700)
    script = script_of(PAGE, but=CAP)
    for printed, real in ((8083, cluster.worker_port), (9120, free_port())):
        assert f"127.0.0.1:{printed}" in script
        script = script.replace(f"127.0.0.1:{printed}", f"127.0.0.1:{real}")
    database = urlsplit(settings.DATABASE_URL)._replace(path=f"/{connection.settings_dict['NAME']}")
    said = terminal.paste(
        f"trap 'kill %1' EXIT\n{script}",
        PYTHONPATH=str(ROOT),
        DATABASE_URL=database.geturl(),
        ZCACHE_BRAIN_URL=settings.CACHE.brain_url,
        ZCACHE_BRAIN_SECRET=cluster.secret,
    )
    earned = json.loads(said.strip().splitlines()[-1])
    hits, sent = (sum(day[name] for day in earned["days"]) for name in ("hits", "egress_bytes"))
    assert hits > 0
    # 0.7 of 100 for a hit and of 9 for a byte; each line is rounded down.
    assert 0 <= (hits * 100 + sent * 9) * 7 // 10 - earned["earned_ucr"] < 5
