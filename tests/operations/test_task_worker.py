"""What a task worker writes to its log."""

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection

from common.version import VERSION
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

START_S = 120.0


def takes_the_end(process: "subprocess.Popen[bytes]") -> bool:
    """Return True once the worker takes SIGTERM; before, it would end at once."""
    [caught] = re.findall(r"SigCgt:\s+(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    return bool(int(caught, 16) & 1 << signal.SIGTERM - 1)


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
        wait_until(partial(takes_the_end, process), timeout_s=START_S)
        process.send_signal(signal.SIGHUP)
        assert process.wait(START_S) == 0
    finally:
        process.kill()
        process.wait()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["event"] == "process_starting"
    assert (lines[0]["process"], lines[0]["version"]) == ("task worker", VERSION)
    # A task that began at once may write lines behind it.
    said = [line.get("message") for line in lines if line["event"] == "task_worker"]
    assert "Launching a worker on all queues" in said
