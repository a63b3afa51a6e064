"""`make run` as a user sees it: the banner's values work, and killed processes restart."""

import http.client
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from common.machine.folders import make_folders
from tests.edgecache.brain.support import ask
from tests.operations.embedded.support import PROJECT, environment
from tests.ports import free_port
from tests.processes import children_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# Words of the commands of the cache's processes.
CACHE = ("edgecache.brain", "eu-central", "us-east")
PORTS = ("PORT", "ZBRAIN_PORT", "ZBRAIN_S3_PORT", "ZBRAIN_WORKER_PORT")


@dataclass
class Run:
    """A running platform."""

    process: "subprocess.Popen[bytes]"
    log: Path
    ports: dict[str, str]

    def said(self) -> str:
        """Return its output so far."""
        return self.log.read_text()

    def started(self, name: str) -> int:
        """Return the number of log lines with this beginning."""
        return len(re.findall(name, self.said()))

    def children(self) -> dict[str, int]:
        """Return the running child processes by a word of their command."""
        found = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if parent == self.process.pid:
                for word in (*CACHE, "gunicorn", "tenants"):
                    if word in command:
                        found[word] = int(folder.name)
        return found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start the platform and wait for its banner."""
    ports = {name: str(free_port()) for name in PORTS}
    data_dir = tmp_path / "var"
    unset = {"ZCACHE_BRAIN_SECRET", "ZMFA_SECRET", "ZJWT_REFRESH_SECRET", "ZAUTH_DEV_SECRET"}
    variables = environment(ZDATA_DIR=str(data_dir), **ports)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "operations.embedded", "up"],
            cwd=PROJECT,
            env={name: value for name, value in variables.items() if name not in unset},
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    made = Run(process, log, ports)
    try:
        wait_until(
            lambda: "Ctrl-C stops everything" in made.said() or process.poll() is not None,
            timeout_s=120,
        )
        assert process.poll() is None, made.said()
        yield made
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(make_folders(data_dir).clusters_dir, ignore_errors=True)


def test_the_banner_s_values_work_and_killed_processes_restart(run: Run) -> None:
    words = shlex.split(re.findall(r"^  (AWS_ACCESS_KEY_ID=.*)$", run.said(), re.MULTILINE)[0])
    values = dict(word.split("=", 1) for word in words if word.startswith("AWS_"))
    url = words[words.index("--endpoint-url") + 1]
    assert url.endswith(run.ports["ZBRAIN_S3_PORT"])
    client = boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=values["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=values["AWS_SECRET_ACCESS_KEY"],
        region_name=values["AWS_DEFAULT_REGION"],
    )

    def reads() -> bool:
        try:
            body = client.get_object(Bucket="development", Key="hello")["Body"].read()
        except Exception:  # noqa: BLE001 - whatever boto3 makes of a server that restarts
            return False
        return bool(body == b"world")

    lines = re.findall(r"^  (curl .*--aws-sigv4 .*)$", run.said(), re.MULTILINE)
    upload, download = (
        subprocess.run(shlex.split(line), cwd=PROJECT, capture_output=True, check=True)
        for line in lines
    )
    assert upload.stdout == b""
    assert download.stdout == (PROJECT / "README.md").read_bytes()
    client.put_object(Bucket="development", Key="hello", Body=b"world")
    assert reads()
    token = re.findall(r"^  Token +(\S+)", run.said(), re.MULTILINE)[0]
    status_url = f"http://127.0.0.1:{run.ports['PORT']}/v1/cache/status"
    wait_until(lambda: ask(status_url, bearer=token).body.get("online_nodes") == 2)
    # A process of the web server checks for it, but only once it serves requests.
    wait_until(lambda: run.started("cache_available") > 0)

    for name in CACHE:
        pid = run.children()[name]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: run.children().get(name, pid) != pid)  # noqa: B023 - used at once
        wait_until(reads)
    wait_until(lambda: ask(status_url, bearer=token).body.get("online_nodes") == 2)
    no_acknowledged_write_is_lost(run, token)

    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) == 0
    assert run.children() == {}
    assert run.started("cache_available") == 1
    client.close()


def no_acknowledged_write_is_lost(run: Run, token: str) -> None:
    """Write over SQL from several threads while the web server and the cluster are killed."""
    url = f"http://127.0.0.1:{run.ports['PORT']}/v1/sql"
    acknowledged: set[int] = set()
    numbers = itertools.count()
    is_over = threading.Event()

    def sql(query: str, params: list[int]) -> dict[str, Any] | None:
        body = json.dumps({"query": query, "params": params, "rows": "arrays"}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, body, headers), timeout=60
            ) as got:
                answer: dict[str, Any] = json.load(got)
        except (OSError, http.client.HTTPException):
            return None
        return answer

    def write() -> None:
        while not is_over.is_set():
            number = next(numbers)
            if sql("INSERT INTO written VALUES ($1)", [number]) is not None:
                acknowledged.add(number)

    def writes_succeed() -> None:
        known = len(acknowledged)
        wait_until(lambda: len(acknowledged) >= known + 20)

    wait_until(lambda: sql("CREATE TABLE IF NOT EXISTS written (n int)", []) is not None)
    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        writes_succeed()
        for pid in (*children_of(run.children()["gunicorn"]), run.children()["tenants"]):
            os.kill(pid, signal.SIGKILL)
            writes_succeed()
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    answer = sql("SELECT array_agg(n) FROM written", [])
    assert answer is not None
    assert acknowledged <= set(answer["rows"][0][0])


@pytest.mark.parametrize("setting", ["ZBRAIN_PORT", "ZBRAIN_S3_PORT", "ZBRAIN_WORKER_PORT"])
def test_a_port_in_use_of_the_brain_is_reported_with_its_setting(
    tmp_path: Path, setting: str
) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        ports = {name: str(free_port()) for name in PORTS} | {setting: str(port)}
        ended = subprocess.run(
            [sys.executable, "-m", "operations.embedded", "up"],
            cwd=PROJECT,
            env=environment(ZDATA_DIR=str(tmp_path / "var"), **ports),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert ended.returncode == 1
    said = ended.stdout + ended.stderr
    assert said.startswith(f"Port {port} is in use by another program.")
    assert f"{setting}=" in said
    assert len(said.splitlines()) == 1
