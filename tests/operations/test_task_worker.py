"""What a task worker writes to its log."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection

from common.version import VERSION
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

START_S = 120.0


def is_working() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM procrastinate_workers)")
        return bool(cursor.fetchall()[0][0])


@pytest.mark.django_db(transaction=True)
def test_each_line_of_a_task_worker_s_log_is_json(tmp_path: Path) -> None:
    log, name = tmp_path / "log", str(connection.settings_dict["NAME"])
    environment = os.environ | {
        "DATABASE_URL": urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl(),
        "ZSECRET_KEYS": ",".join(settings.SECRET_KEYS),
        "ZLOG_FORMAT": "json",
    }
    with log.open("wb") as output:
        command = [sys.executable, "manage.py", "procrastinate", "worker"]
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        wait_until(is_working, timeout_s=START_S)
        process.send_signal(signal.SIGHUP)
        assert process.wait(START_S) == 0
    finally:
        process.kill()
        process.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["event"] == "process_starting"
    assert (lines[0]["process"], lines[0]["version"]) == ("task worker", VERSION)
    assert {"event": "task_worker", "message": "Launching a worker on all queues"}.items() <= (
        lines[-1].items()
    )
