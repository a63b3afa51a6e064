"""kill -9 of each process in the middle of importing, settling and paying: nothing is doubled.

One durable PostgreSQL, one brain with a worker, and the platform's own commands and task worker:
real processes, shared by all cases. Each halts in the middle of a transaction until it is killed.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from cryptography.fernet import Fernet

from billing import ledger
from common.machine.folders import make_folders, make_runtime_dir
from common.machine.postgres_programs import find_binaries
from operations.embedded.postgres.cluster import CONTROL
from operations.embedded.postgres.cluster import LocalCluster as Postgres
from operations.embedded.supervisor import processes_in
from tests.billing.kills.bank import EARNED_UCR, FOLDER, OPERATOR
from tests.database_client import DatabaseClient
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect
from tests.edgecache.databases import fill, template
from tests.operations.embedded.support import PROJECT, start
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Victim = Literal["command", "task worker", "brain", "PostgreSQL"]
# Three pages of the import, and four batches of settling.
LINES = 300
WORKER = ("manage", "procrastinate", "worker", "--concurrency=1")
CHECKS = (
    ledger.UNBALANCED,
    ledger.WRONG_BALANCE,
    ledger.WRONG_FEES,
    ledger.UNCHARGED,
    ledger.WRONG_DEBT,
    ledger.WRONG_DAY,
)
SEED = """
    INSERT INTO brain_usageline (line_id, organization_id, environment_pk, bucket_id, bucket_name,
        node_id, operator_id, used_at, hits, bytes_served)
    SELECT gen_random_uuid(), 1 + n %% 3, 1, n %% 50, 'b',
        '00000000-0000-0000-0000-000000000009', %s,
        date_trunc('hour', now()) - interval '1 hour', 10, 1000
    FROM generate_series(1, %s) n
"""
CONFIRMED = "SELECT count(*) FROM billing_journal WHERE kind = 'payout_confirmed'"
BOOKED = (
    "SELECT sum(balance_ucr) FROM billing_account WHERE kind = 'payable'",
    "SELECT count(*) FROM billing_payout",
    "SELECT count(*) FROM billing_journal WHERE kind = 'payout'",
    "SELECT count(*) FROM procrastinate_jobs WHERE task_name ~ 'send_payout' AND status = 'todo'",
)


class Nursery:
    """The process that the platform's processes are forked from."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.billing.kills.child"],
                cwd=PROJECT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )

    def ask(self, *words: str | int) -> int:
        """Send a command; return its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        """End it; what it forked was killed before, or ends by itself."""
        self.process.kill()
        self.process.communicate()


@dataclass(frozen=True)
class Forked:
    """A process of the platform."""

    nursery: Nursery
    pid: int

    def kill(self) -> None:
        """Kill it as a power cut would."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        """Wait for its end; return its exit code."""
        return self.nursery.ask("wait", self.pid)


@dataclass
class Platform:
    """The processes and what they share."""

    postgres: Postgres
    brain: Cluster
    rows: DatabaseClient
    nursery: Nursery
    bank: Path
    log: Path

    def begin(self, *words: str) -> Forked:
        """Start a process of the platform."""
        return Forked(self.nursery, self.nursery.ask("fork", *words))

    def run(self, *words: str) -> None:
        """Run a process of the platform to its end."""
        assert self.begin(*words).wait() == 0, self.log.read_text()[-3000:]

    def settle(self) -> None:
        """Settle to the end."""
        self.run("manage", "settle")

    def settle_by_task(self) -> Forked:
        """Have the task worker settle; return it."""
        self.run("queue settling")
        return self.begin(*WORKER)

    @contextmanager
    def halted(self, moment: str) -> Iterator[None]:
        """Have the next process that comes to a moment halt there until the block ends."""
        waits = self.bank / f"waits-{moment}"
        waits.unlink(missing_ok=True)
        (self.bank / f"wait-{moment}").touch()
        try:
            yield
        finally:
            (self.bank / f"wait-{moment}").unlink()

    def wait_for(self, moment: str) -> None:
        """Wait until a process has halted."""
        wait_until((self.bank / f"waits-{moment}").exists)

    def value(self, statement: str, *values: int) -> int:
        """Return one number."""
        row = self.rows.execute(statement, values).fetchone()
        assert row is not None
        return int(row[0] or 0)

    def imported(self) -> int:
        """Return how many lines were imported."""
        return self.value("SELECT count(DISTINCT line_id) FROM billing_usageline")

    def charged(self) -> int:
        """Return how many charges were made."""
        return self.value("SELECT count(*) FROM billing_charge")

    def payments(self) -> int:
        """Return how many payouts the bank has paid."""
        return len(list(self.bank.glob("paid-*")))

    def kill_postgres(self) -> None:
        """Kill every process of the server, and start it again."""
        for server in processes_in(self.postgres.data, program="postgres"):
            # Some end by themselves when the first one is gone.
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
        self.postgres.stop()
        start(self.postgres)

    def kill_brain(self) -> None:
        """Kill the brain, and start it again."""
        self.brain.kill(0)
        self.brain.restart(0)
        self.wait_for_brain()

    def wait_for_brain(self) -> None:
        """Wait until the brain answers."""

        def answers() -> bool:
            try:
                return bool(self.brain.call("GET", "/health"))
            except OSError:
                return False

        wait_until(answers)

    def check(self) -> None:
        """Check that the ledger adds up, and that each line was charged once."""
        for statement in CHECKS:
            assert self.rows.execute(statement).fetchall() == []
        assert self.value("SELECT sum(amount_ucr) FROM billing_entry") == 0
        assert self.charged() == self.value("SELECT count(*) FROM billing_usageline")
        assert self.value("SELECT count(*) FROM billing_usageline") == self.value(
            "SELECT count(*) FROM (SELECT DISTINCT line_id, kind FROM billing_usageline) l"
        )


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Return a running platform on a PostgreSQL of its own."""
    folder = tmp_path_factory.mktemp("kills")
    folders = make_folders(folder / "var")
    binaries = find_binaries({}, make_runtime_dir(folders.data_dir), production=False)
    postgres = Postgres(CONTROL, folders, binaries)
    secret_keys = Fernet.generate_key().decode()
    start(postgres)
    brain = Cluster(folder / "brain", postgres.url, secret_keys, workers=1)
    brain.folder.mkdir()
    bank, log = folder / "bank", folder / "platform.log"
    bank.mkdir()
    environment = os.environ | {
        "DATABASE_URL": postgres.url,
        "ZBRAIN_DATABASE_URL": "",
        "ZSECRET_KEYS": secret_keys,
        "ZCACHE_BRAIN_URL": f"http://127.0.0.1:{brain.internal_port}",
        "ZCACHE_BRAIN_SECRET": brain.secret,
        "DJANGO_SETTINGS_MODULE": "tests.billing.kills.settings",
        "PYTHONPATH": str(PROJECT),
        FOLDER: str(bank),
    }
    nursery = Nursery(environment, log)
    made = Platform(postgres, brain, DatabaseClient(postgres.url), nursery, bank, log)
    try:
        fill(postgres.url, template("control_template"))
        brain.start()
        yield made
    finally:
        nursery.end()
        brain.end()
        postgres.stop()
        postgres.release()
        shutil.rmtree(folders.clusters_dir, ignore_errors=True)


def strike(platform: Platform, victim: Victim, process: Forked) -> None:
    """Kill the victim."""
    if victim == "brain":
        platform.kill_brain()
    elif victim == "PostgreSQL":
        platform.kill_postgres()
        platform.wait_for_brain()
    else:
        process.kill()


@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        ("command", "importing"),
        ("command", "settling"),
        ("task worker", "importing"),
        ("task worker", "settling"),
        ("brain", "importing"),
        ("PostgreSQL", "importing"),
        ("PostgreSQL", "settling"),
    ],
)
def test_a_kill_neither_loses_nor_doubles_a_line(
    platform: Platform, victim: Victim, moment: str
) -> None:
    lines, charges = platform.imported(), platform.charged()
    platform.rows.execute(SEED, [OPERATOR, LINES])
    with platform.halted(moment):
        is_command = victim == "command"
        process = platform.begin("manage", "settle") if is_command else platform.settle_by_task()
        platform.wait_for(moment)
        # Some of it is committed, and a transaction is open.
        done = (platform.imported() - lines) * 2 + platform.charged() - charges
        assert 0 < done < 4 * LINES
        strike(platform, victim, process)
    if victim in {"brain", "PostgreSQL"}:
        # The task worker goes on, or has ended and is started again.
        process.kill()
    # What a dead task worker had begun does not keep the next one from settling.
    worker = platform.settle_by_task()
    # Two kinds of usage in each line.
    wait_until(lambda: platform.charged() == charges + 2 * LINES)
    worker.kill()
    assert platform.imported() == lines + LINES
    platform.settle()
    assert platform.charged() == charges + 2 * LINES
    platform.check()


def test_a_brain_or_worker_that_is_killed_loses_no_count_beyond_the_promise(
    platform: Platform,
) -> None:
    keys = platform.brain.tenant()
    s3 = connect(keys, platform.brain.url)
    s3.create_bucket(Bucket="docs")
    s3.put_object(Bucket="docs", Key="key", Body=b"x" * 1000)
    s3.close()
    signer = Signer(keys, platform.brain.url)

    def read(times: int) -> None:
        for _ in range(times):
            assert signer.send("GET", "/docs/key").status == 200

    def counted() -> int:
        return platform.value(
            "SELECT sum(quantity) FROM billing_usageline WHERE kind IN ('hit', 'miss')"
            " AND organization_id = %s",
            keys.organization_id,
        )

    read(30)
    platform.brain.kill(1)
    read(30)
    platform.settle()
    # The worker's death lost nothing, and settling has made the brain write.
    assert counted() == 60
    read(20)
    platform.kill_brain()
    platform.brain.restart(1)
    read(10)
    platform.settle()
    # The brain may lose the counts of its last ten seconds.
    assert 70 <= counted() <= 90
    platform.check()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("victim", ["task worker", "PostgreSQL"])
def test_a_kill_in_the_middle_of_paying_pays_once(
    platform: Platform, victim: Victim, moment: str
) -> None:
    paid = platform.payments()
    with platform.halted(moment):
        platform.run("request payout")
        worker = platform.begin(*WORKER)
        platform.wait_for(moment)
        strike(platform, victim, worker)
    if victim == "PostgreSQL":
        # The bank pays while its answer cannot be recorded.
        wait_until(lambda: platform.payments() == paid + 1)
        worker.kill()
    for _ in range(2):
        platform.run("manage", "runpayouts")
    # One file for each payout: creating a second one would have failed.
    assert platform.payments() == paid + 1
    states = platform.rows.execute("SELECT state FROM billing_payout").fetchall()
    assert {row[0] for row in states} == {"confirmed"}
    platform.check()


@pytest.mark.parametrize("victim", ["command", "PostgreSQL"])
def test_a_kill_while_a_payout_is_debited_moves_nothing(platform: Platform, victim: Victim) -> None:
    before = booked(platform)
    with platform.halted("booking"):
        process = platform.begin("request payout")
        platform.wait_for("booking")
        strike(platform, victim, process)
    if victim == "PostgreSQL":
        process.kill()
    # Earlier earnings are payable; there is no payout, no journal of one, and no job.
    payable, *others = booked(platform)
    assert (payable, others) == (before[0] + EARNED_UCR, before[1:])
    platform.check()
    # The next request pays it, with the earnings since then.
    platform.run("request payout")
    assert booked(platform)[0] == before[0]
    for _ in range(2):
        platform.run("manage", "runpayouts")
    platform.check()


@pytest.mark.parametrize("victim", ["command", "PostgreSQL"])
def test_a_kill_while_a_confirmation_is_recorded_pays_once(
    platform: Platform, victim: Victim
) -> None:
    paid, confirmed = platform.payments(), platform.value(CONFIRMED)
    platform.run("request payout")
    platform.run("manage", "runpayouts")
    with platform.halted("booking"):
        process = platform.begin("manage", "runpayouts")
        platform.wait_for("booking")
        strike(platform, victim, process)
    if victim == "PostgreSQL":
        process.kill()
    assert platform.value(CONFIRMED) == confirmed
    for _ in range(2):
        platform.run("manage", "runpayouts")
    assert platform.value(CONFIRMED) == confirmed + 1
    assert platform.payments() == paid + 1
    platform.check()


def booked(platform: Platform) -> list[int]:
    """Return what is payable in µcr, and the numbers of payouts, journals of payouts and jobs.

    Jobs: those that wait to send a payout.
    """
    return [platform.value(statement) for statement in BOOKED]
