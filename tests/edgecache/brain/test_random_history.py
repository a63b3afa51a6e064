"""A random history of requests, kills, altered files and full disks, against a model.

No answer may show bytes, an ETag or a listing that the acknowledged writes do not explain, and no
request may fail without a reason. An operation that failed may have happened or not, until a read
decides.
"""

import os
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cryptography.fernet import Fernet
from hypothesis import HealthCheck, Phase, assume, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.edgecache.alterations import cut, flip, grow, replace
from tests.edgecache.brain.brains import stored_files
from tests.edgecache.brain.history.machines import STORE, WORKERS, Machines
from tests.edgecache.brain.history.model import KEYS, Model, Upload
from tests.edgecache.brain.history.operations import (
    BUCKET,
    Client,
    Complete,
    Copy,
    Delete,
    Get,
    List,
    Operation,
    Outcome,
    Purge,
    Put,
    PutPart,
    WrongAnswerError,
)
from tests.edgecache.brain.history.versions import (
    NULL,
    DeleteVersion,
    GetVersion,
    ListVersions,
    Restore,
)
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import HAS_CEPH, connect

pytestmark = pytest.mark.slow

# Number of long histories; without it there is one short history.
EXAMPLES = int(os.environ.get("ZFUZZ_EXAMPLES", "0"))
SHORT = 18
STEPS = 150 if EXAMPLES else 60
# Each takes seconds, for the new brain waits until the old one's lease has ended.
CRASHES = STEPS if EXAMPLES else 1
SHOWN = 60
MIB = 2**20

keys = st.sampled_from(KEYS)
small = st.sampled_from([0, 1, 100, 5000, 70_000, 200_000])
large = st.sampled_from([MIB + 11, 3 * MIB + 11])
sizes = st.one_of(small, small, small, large)
bodies = sizes.map(os.urandom)
spans = st.tuples(st.sampled_from([0, 1, 4000, 131_000, MIB]), st.integers(0, 300_000))
puts = st.builds(Put, key=keys, body=bodies, is_new=st.integers(0, 4).map(lambda n: n == 4))
gets = st.builds(
    Get,
    name=keys,
    span=st.one_of(st.none(), spans.map(lambda span: (span[0], span[0] + span[1]))),
    is_redirected=st.integers(0, 3).map(lambda n: n == 3),
)
copies = st.permutations(KEYS).map(lambda names: Copy(key=names[0], source=names[1]))
deletes = st.builds(Delete, key=keys)
purges = st.builds(Purge, prefix=st.sampled_from(["", "a/", "b/1"]))
requests = st.one_of(puts, puts, gets, gets, gets, copies, deletes, purges, st.builds(List))
bursts = st.lists(
    st.one_of(puts, puts, puts, gets, copies, deletes, purges), min_size=2, max_size=8
)
picks = st.integers(0, 50)
versions = st.one_of(
    *(st.builds(kind, pick=picks) for kind in (GetVersion, DeleteVersion, Restore))
)
victims = st.sets(st.integers(0, WORKERS), min_size=1)


class History(RuleBasedStateMachine):
    """One tenant's history. failures: of all that ran."""

    failures: ClassVar[list[Exception]] = []

    def __init__(self, machines: Machines) -> None:
        super().__init__()
        self.machines = machines
        self.model = Model()
        self.steps: list[str] = []
        self.crashes = 0
        tenant = machines.cluster.tenant()
        self.client = Client(machines.cluster, Signer(tenant, machines.cluster.url))
        self.s3 = connect(tenant, machines.cluster.url)

    @initialize(number=st.integers(0, 1000))
    def begin(self, number: int) -> None:
        """Create the bucket. Hypothesis's first example, the simplest one, is only writes."""
        assume(number)
        self.s3.create_bucket(Bucket=BUCKET)
        self._note("created the bucket")

    @rule(operation=requests)
    def request(self, operation: Operation) -> None:
        """Send a request."""
        self._run([operation])

    @rule(operations=bursts)
    def at_once(self, operations: list[Operation]) -> None:
        """Send several requests concurrently."""
        self._run(operations)

    @precondition(lambda self: not self.machines.full)
    @rule(key=keys)
    def begin_upload(self, key: str) -> None:
        """Begin a multipart upload."""
        made = self.s3.create_multipart_upload(Bucket=BUCKET, Key=key)
        self.model.uploads.append(Upload(key, made["UploadId"]))
        self._note(f"began an upload of {key}")

    @precondition(lambda self: self.model.uploads)
    @rule(data=st.data(), body=bodies, is_large=st.integers(0, 7))
    def put_part(self, data: st.DataObject, body: bytes, is_large: int) -> None:
        """Upload a part. All but the last have 5 MiB."""
        upload = data.draw(st.sampled_from(self.model.uploads))
        number = max(upload.parts, default=0) + 1
        if number > 1 and len(upload.parts[number - 1]) < 5 * MIB:
            number -= 1
        elif is_large == 7:
            body = os.urandom(5 * MIB)
        self._run([PutPart(upload=upload, number=number, body=body)])

    @precondition(lambda self: any(upload.parts for upload in self.model.uploads))
    @rule(
        data=st.data(), others=st.lists(puts, max_size=2), killed=st.sets(st.integers(0, WORKERS))
    )
    def complete(self, data: st.DataObject, others: list[Operation], killed: set[int]) -> None:
        """Complete an upload, sometimes while something is killed."""
        uploads = [upload for upload in self.model.uploads if upload.parts]
        upload = data.draw(st.sampled_from(uploads))
        done = Complete(key=upload.key, upload=upload)
        is_killing = len(killed) == 1 and self.crashes < CRASHES
        self._run([done, *others], killed if is_killing else set(), delay_ms=len(others) * 9)
        if others:
            # By itself it has decided already.
            done.decide(self.model)

    @precondition(lambda self: self.crashes < CRASHES)
    @rule(operations=bursts, killed=victims, delay_ms=st.integers(0, 80))
    def crash(self, operations: list[Operation], killed: set[int], delay_ms: int) -> None:
        """Kill processes in the middle of requests, and start them again."""
        self._run(operations, killed, delay_ms)

    @rule(number=st.integers(1, WORKERS))
    def lose_worker(self, number: int) -> None:
        """Kill a worker for a while."""
        self._note(f"killed worker {number}")
        self.machines.kill({number})

    @precondition(lambda self: self.machines.dead)
    @rule()
    def revive(self) -> None:
        """Start the workers that were killed."""
        self._note("revived")
        self.machines.revive()

    @rule(number=st.integers(0, WORKERS), free_blocks=st.sampled_from([0, 1, 30, 300]))
    def fill_disk(self, number: int, free_blocks: int) -> None:
        """Leave almost no room on a disk."""
        self._note(f"filled disk {number} but for {free_blocks} blocks")
        self.machines.fill(number, free_blocks=free_blocks)

    @precondition(lambda self: self.machines.full)
    @rule()
    def make_room(self) -> None:
        """Free the disks."""
        self._note("made room")
        self.machines.make_room()

    @precondition(lambda self: not self.machines.full)
    @rule(
        key=keys,
        places=st.sets(st.integers(0, STORE), min_size=1),
        how=st.sampled_from([flip, flip, replace, cut, grow]),
    )
    def alter(self, key: str, places: set[int], how: Any) -> None:
        """Alter an object's files without their owners' knowledge."""
        for state in self.model.states[key]:
            if state is None or not state.body:
                continue
            for place in places:
                for file in self.machines.files(state.sha256, place):
                    if not file.stat().st_size:
                        # It was cut before.
                        continue
                    how(file)
                    self._note(f"{how.__name__} of {key} at {place}")
                    if place == self.machines.durable:
                        self.model.damaged.add(state.sha256)

    @precondition(lambda self: self.model.uploads)
    @rule(how=st.sampled_from([flip, cut]))
    def alter_parts(self, how: Any) -> None:
        """Alter the files of the parts."""
        files = [
            file for file in stored_files(self.machines.disk(0), "parts") if file.stat().st_size
        ]
        for file in files:
            how(file)
            self._note(f"{how.__name__} of a part")
        for upload in self.model.uploads:
            upload.is_damaged |= bool(files)

    def teardown(self) -> None:
        """Cut the power at the end, and read everything."""
        self.s3.close()
        if not self.steps or self.steps[-1].startswith("WRONG"):
            return
        self._note("cut the power")
        self.cut_power()
        self._run([List()])
        for key in KEYS:
            self._run([Get(name=key)])
            self._run([Delete(key=key)])

    def cut_power(self) -> None:
        """Kill everything, and start it again."""
        self.machines.kill(set(range(WORKERS + 1)))
        self.machines.make_room()
        self.machines.revive()

    def _run(
        self, operations: list[Operation], killed: set[int] | None = None, delay_ms: int = 0
    ) -> None:
        """Send requests concurrently, kill a process, and compare the answers with the model."""
        try:
            self._run_judged(operations, killed, delay_ms)
        except Exception as exc:
            self.failures.append(exc)
            raise

    def _run_judged(
        self, operations: list[Operation], killed: set[int] | None, delay_ms: int
    ) -> None:
        before = dict(self.model.states)
        for key, states in before.items():
            self.model.ever[key] |= states
        # First the deletes: what is read meanwhile may be gone.
        for operation in sorted(operations, key=lambda each: not isinstance(each, DeleteVersion)):
            operation.bind(self.model)
        is_full = 0 in self.machines.full
        with ThreadPoolExecutor(len(operations)) as threads:
            sent = [threads.submit(operation.run, self.client) for operation in operations]
            if killed:
                time.sleep(delay_ms / 1000)
                self.machines.kill(killed)
        for each in sent:
            each.result()
        for operation in operations:
            self._note(f"{operation}: {operation.answer.status} {operation.answer.code}")
        if killed:
            self.crashes += 1
            self._note(f"killed {killed} after {delay_ms} ms")
            self.machines.make_room()
            self.machines.revive()
        try:
            self._judge(operations, before, is_cut=0 in (killed or ()), is_full=is_full)
        except WrongAnswerError as exc:
            self._note(f"WRONG: {exc}")
            raise WrongAnswerError("\n".join(self.steps[-SHOWN:])) from exc

    def _judge(
        self,
        operations: list[Operation],
        before: dict[str, Any],
        *,
        is_cut: bool,
        is_full: bool,
    ) -> None:
        meanwhile = dict(before)
        for _ in operations:
            for each in operations:
                if each.key:
                    meanwhile[each.key] |= each.results(meanwhile)
        outcomes = [operation.judge(meanwhile) for operation in operations]
        for operation, outcome in zip(operations, outcomes, strict=True):
            is_excused = operation.may_fail(self.model, is_cut=is_cut, is_full=is_full)
            if outcome is Outcome.LOST and not is_excused:
                raise WrongAnswerError(f"no reason to fail: {operation}")
        for key in {operation.key for operation in operations} - {""}:
            writers = [
                pair for pair in zip(operations, outcomes, strict=True) if pair[0].key == key
            ]
            is_done = any(outcome is Outcome.DONE for _, outcome in writers)
            after = frozenset() if is_done else before[key]
            for operation, outcome in writers:
                if outcome is not Outcome.REFUSED:
                    after |= operation.results(meanwhile)
            self.model.states[key] = after
        self._keep(operations, outcomes, meanwhile)
        if len(operations) == 1:
            operations[0].decide(self.model)

    def _keep(
        self, operations: list[Operation], outcomes: list[Outcome], states: dict[str, Any]
    ) -> None:
        """Add the versions that were made to the model."""
        for operation, outcome in zip(operations, outcomes, strict=True):
            if not operation.key or isinstance(operation, DeleteVersion):
                continue
            made = operation.results(states)
            self.model.ever[operation.key] |= made
            version = operation.answer.headers.get("x-amz-version-id", NULL)
            if outcome is Outcome.DONE and version != NULL:
                self.model.kept[operation.key, version] = made
                self.model.ages[version] = len(self.steps)
            elif outcome is not Outcome.REFUSED:
                self.model.lost[operation.key] |= made

    def _note(self, step: str) -> None:
        self.steps.append(step)


class VersionHistory(History):
    """One tenant's history in a bucket that keeps versions, and for a while does not."""

    switches = 0

    def switch(self, status: str) -> None:
        """Keep versions, or no more of them."""
        configuration = {"Status": status}
        self.s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=configuration)
        self._note(f"versions are {status}")

    @initialize(number=st.integers(0, 1000))
    def begin(self, number: int) -> None:
        """Begin with objects that have no versions."""
        super().begin(number)
        for key in KEYS[:3]:
            self._run([Put(key=key, body=key.encode())])
        self.switch("Enabled")

    @precondition(lambda self: self.switches < 2)
    @rule()
    def toggle(self) -> None:
        """Suspend the versions, later enable them again."""
        self.switches += 1
        self.switch("Suspended" if self.switches % 2 else "Enabled")

    @rule(operations=bursts, others=st.lists(versions, min_size=1, max_size=3))
    def write_versions(self, operations: list[Operation], others: list[Operation]) -> None:
        """Write objects while versions are read, deleted and restored."""
        self._run([*operations, *others])
        self._run([ListVersions()])

    @rule(operation=versions)
    def request_version(self, operation: Operation) -> None:
        """Send a request about a version, and see what is current then."""
        self._run([operation])
        self._run([ListVersions()])

    def cut_power(self) -> None:
        """Kill everything while versions are made and deleted; no acknowledged one may be lost."""
        self.machines.make_room()
        self.switch("Enabled")
        writes = [Put(key=key, body=os.urandom(5000)) for key in KEYS]
        others = [Delete(key=KEYS[0]), Restore(pick=0), DeleteVersion(pick=1)]
        self._run([*writes, *others], set(range(WORKERS + 1)), delay_ms=15)
        self._run([ListVersions()])
        for pick in range(len(self.model.kept)):
            self._run([GetVersion(pick=pick)])


@pytest.fixture(params=["ceph"] if HAS_CEPH else ["file", "s3"])
def machines(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path
) -> Iterator[Machines]:
    """Return a brain with two workers, on files, on a bucket of another brain, and on Ceph."""
    variables: dict[str, str] = {}
    store: Path | None = None
    store_url = ""
    durable: int | None = 0
    if request.param == "s3":
        other: Cluster = request.getfixturevalue("shared_bare_cluster")
        store, tenant, durable = other.folder, other.tenant(), STORE
        store_url = other.database_url
        client = connect(tenant, other.url)
        client.create_bucket(Bucket="managed")
        client.close()
        variables = {
            "ZBRAIN_STORE_URL": f"s3://{tenant.access_key}@managed/zonal?endpoint={other.url}",
            "ZBRAIN_STORE_SECRET_KEY": tenant.secret_key,
        }
    elif request.param == "ceph":
        # Ceph checks its own files: nothing durable is altered.
        variables, durable = request.getfixturevalue("new_store")(), None
    key = Fernet.generate_key().decode()
    cluster = Cluster(tmp_path, database_url, key, variables=variables, workers=WORKERS)
    found = Machines(cluster, store, durable, store_url)
    with found.disks():
        try:
            cluster.start()
            yield found
        finally:
            cluster.end()


def test_no_byte_is_wrong_and_no_acknowledgement_is_lost(machines: Machines) -> None:
    # Without a number of histories it is the same one each time, with something of everything.
    for number in [secrets.randbits(64) for _ in range(EXAMPLES)] or [SHORT]:
        run_history(machines, number)


@pytest.mark.parametrize("machines", ["file"], indirect=True)
def test_no_version_is_wrong_and_none_is_lost(machines: Machines) -> None:
    for number in [secrets.randbits(64) for _ in range(EXAMPLES)] or [SHORT]:
        run_history(machines, number, VersionHistory)


def run_history(machines: Machines, number: int, kind: type[History] = History) -> None:
    """Run the history of this number until the same requests get different answers.

    Each history is a separate run, because Hypothesis expects the same continuation after the same
    beginning.
    """

    @seed(number)
    class OnMachines(kind):  # type: ignore[valid-type,misc]  # a class made here
        def __init__(self) -> None:
            super().__init__(machines)

    History.failures.clear()
    with suppress(FlakyStrategyDefinition):
        run_state_machine_as_test(
            OnMachines,
            settings=settings(
                max_examples=1,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                # A shorter history does not repeat what happened: when a kill hits is not in its
                # hands.
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    if History.failures:
        raise History.failures.pop()
