"""The control plane on three nodes of Patroni: two web servers behind HAProxy, in both ways.

The servers of one pair keep a connection for each thread, those of the other share four.
"""

import http.client
import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.cast import PASSWORD
from tests.deploy.proxies import APP, Proxy, running
from tests.documents.blocks import blocks
from tests.edgecache.databases import migrate
from tests.scale.callers import Reply, Seen, callers
from tests.scale.figures import Figures
from tests.scale.patroni import PAGE, Node, PatroniCluster, patroni_cluster
from tests.waiting import wait_until
from tests.web_process import Web, web_process

TITLE: Final = "The control database on three nodes"
# ZDB_POOL_SIZE, 0 if it is unset.
POOL_SIZES: Final = ("0", "4")
# An organization may have 500 saved queries.
ORGANIZATIONS: Final = 4
QUICK_S: Final = 8.0
# Beyond Patroni's ttl.
MARGIN_S: Final = 5.0
REQUESTS: Final = 5_000


class Connection(http.client.HTTPConnection):
    """A client's connection to HAProxy, which is opened again when it was closed."""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(APP, timeout=30)
        self._proxy = proxy

    def connect(self) -> None:
        self.sock = self._proxy.connect()

    def ask(self, method: str, path: str, token: str = "", body: Any = None) -> tuple[Reply, Any]:
        """Send a request; return what it got, and the body."""
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            self.request(method, path, json.dumps(body) if body else None, headers)
            answer = self.getresponse()
            content = answer.read()
        except BaseException:
            self.close()
            raise
        reply = Reply(answer.status, answer.headers.get("Retry-After", ""), content.decode()[:300])
        is_json = "json" in answer.headers.get("Content-Type", "")
        return reply, json.loads(content) if is_json else None


@dataclass
class Front:
    """Two web servers behind HAProxy. tokens: of one member of each organization.

    acknowledged: the names of the saved queries that were answered with 201, by organization.
    connections: what was opened.
    """

    pool_size: str
    proxy: Proxy
    webs: list[Web]
    tokens: list[str] = field(default_factory=list)
    acknowledged: list[set[str]] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    def connect(self) -> Connection:
        """Return another connection, which `close` closes."""
        self.connections.append(Connection(self.proxy))
        return self.connections[-1]

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections:
            connection.close()

    def sign_up(self) -> None:
        """Create the organizations, and the database of the first one."""
        connection = self.connect()
        for number in range(ORGANIZATIONS):
            email = f"alice{number}@pool{self.pool_size}.example.com"
            body = {"email": email, "password": PASSWORD, "organization": f"Alice's {number}"}
            reply, made = connection.ask("POST", "/v1/auth/signup", body=body)
            assert reply.status == 201, reply
            self.tokens.append(made["access_token"])
            self.acknowledged.append(set())

    def reader(self) -> Callable[[], Reply]:
        """Return a request that reads."""
        connection = self.connect()
        return lambda: connection.ask("GET", "/v1/whoami", self.tokens[0])[0]

    def writer(self) -> Callable[[], Reply]:
        """Return a request that writes another row each time."""
        connection, numbers = self.connect(), count()

        def write() -> Reply:
            number = next(numbers)
            of, name = number % ORGANIZATIONS, f"query {number}"
            body = {"name": name, "query": "SELECT 1"}
            reply, _ = connection.ask("POST", "/v1/sql/queries", self.tokens[of], body)
            if reply.status == 201:
                self.acknowledged[of].add(name)
            return reply

        return write

    def querier(self) -> Callable[[], Reply]:
        """Return a request that runs SQL on the tenants' cluster, which nothing happens to."""
        connection = self.connect()
        body = {"query": "SELECT 1"}
        return lambda: connection.ask("POST", "/v1/sql", self.tokens[0], body)[0]

    def saved(self, number: int) -> set[str]:
        """Return the names of all saved queries of an organization."""
        connection, found, cursor = self.connect(), set(), ""
        while True:
            path = f"/v1/sql/queries?page_size=200{cursor}"
            reply, page = connection.ask("GET", path, self.tokens[number])
            assert reply.status == 200, reply
            found |= {each["name"] for each in page["results"]}
            if page["next"] is None:
                return found
            cursor = f"&cursor={page['next']}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[PatroniCluster]:
    """Run three nodes that replicate synchronously."""
    with patroni_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def database(cluster: PatroniCluster) -> str:
    """Return the URL of a migrated control database, as its owner."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE control LOGIN PASSWORD 'control'")
        connection.execute("CREATE DATABASE control OWNER control")
    address = urlsplit(cluster.url)
    network = f"control:control@{address.hostname}:{address.port}"
    url = address._replace(netloc=network, path="/control").geturl()
    migrate(url)
    return url


@pytest.fixture(scope="module")
def fronts(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Front]]:
    """Run two web servers behind HAProxy for each size of the pool."""
    folder = tmp_path_factory.mktemp("fronts")
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:

        def begin(names: tuple[str, str]) -> Web:
            own = folder / "-".join(names)
            own.mkdir()
            return stack.enter_context(web_process(own, **settings_of(database, own, names[0])))

        names = [(size, number) for size in POOL_SIZES for number in "12"]
        webs = list(pool.map(begin, names))
        made = []
        for size in POOL_SIZES:
            pair, webs = webs[:2], webs[2:]
            proxy = stack.enter_context(proxy_of(folder / f"haproxy{size}", pair))
            made.append(Front(size, proxy, pair))
            stack.callback(made[-1].close)
            made[-1].sign_up()
        yield made


def settings_of(database: str, folder: Path, pool_size: str) -> dict[str, str]:
    """Return the settings of a web server."""
    return {
        "DATABASE_URL": database,
        "ZDB_POOL_SIZE": pool_size,
        "ZDATA_DIR": str(folder),
        "ZFEATURES": "none",
        "ZALLOWED_HOSTS": f"{APP},127.0.0.1",
        "ZHSTS": "host",
        "ZTRUSTED_PROXIES": "127.0.0.0/8",
        "ZWEB_WORKERS": "1",
    }


def proxy_of(folder: Path, webs: list[Web]) -> Any:
    """Return HAProxy with its file of deploy/, changed as docs/scaling.md says."""
    (lines,) = (each.text for each in blocks(PAGE) if each.text.startswith("backend web\n"))
    for number, web in enumerate(webs, 1):
        lines = lines.replace(f"10.0.0.1{number}:8000", f"127.0.0.1:{web.port}")

    def edit(text: str) -> str:
        return re.sub(r"^backend web\n(?: .*\n)+", lines, text, flags=re.MULTILINE)

    return running("haproxy", folder, web_port=9, brain_port=9, edit=edit)


@pytest.fixture(scope="module")
def seen(fronts: list[Front]) -> Iterator[Seen]:
    """Have callers of both pairs repeat their requests through all events."""
    requests = {
        f"{name} {front.pool_size}": request
        for front in fronts
        for name, request in (
            ("reader", front.reader()),
            ("writer", front.writer()),
            ("querier", front.querier()),
        )
    }
    with callers(requests) as made:
        made.go_on()
        yield made


@pytest.fixture
def event(cluster: PatroniCluster, seen: Seen, figures: Figures) -> "Event":
    """Begin with everything well."""
    cluster.wait_healthy()
    seen.go_on()
    return Event(cluster, seen, figures, len(seen.failures))


@dataclass
class Event:
    """Something that happens now, and how long callers go without a success."""

    cluster: PatroniCluster
    seen: Seen
    figures: Figures
    failed_before: int
    since: float = field(default_factory=time.monotonic)

    @property
    def failures(self) -> list[str]:
        """What was neither a success nor 429 or 503 with Retry-After."""
        return self.seen.failures[self.failed_before :]

    def end(self, what: str, limit_s: float) -> None:
        """Wait until everything is well again; compare the time without success with the limit."""
        self.cluster.wait_healthy()
        self.seen.go_on()
        found = [
            self.seen.longest_s(self.since, *(each for each in self.seen.done if size in each))
            for size in POOL_SIZES
        ]
        measured = f"{found[0]:.1f} s; with `ZDB_POOL_SIZE` {found[1]:.1f} s"
        self.figures.add(TITLE, what, self.promised(limit_s), measured)
        assert self.failures == []
        assert max(found) <= limit_s, measured

    def promised(self, limit_s: float) -> str:
        """Return the limit as the page has it."""
        of_ttl = f" (Patroni's ttl + {MARGIN_S:.0f})" if limit_s > self.cluster.ttl_s else ""
        return f"≤ {limit_s:.0f} s{of_ttl}"


def test_switchover(event: Event) -> None:
    event.cluster.switchover()
    event.end("switchover: longest time without a success", QUICK_S)


def test_a_killed_postgresql(event: Event) -> None:
    event.cluster.primary().kill_postgres()
    event.end("the primary's PostgreSQL killed", QUICK_S)


@pytest.mark.parametrize(
    ("what", "begin", "end"),
    [
        ("the primary's node lost", Node.lose, Node.start),
        ("the primary's node frozen", Node.freeze, Node.thaw),
        ("the primary's packets dropped", Node.drop_packets, Node.pass_packets),
    ],
)
def test_a_primary_that_is_gone(
    event: Event, what: str, begin: Callable[[Node], None], end: Callable[[Node], None]
) -> None:
    former = event.cluster.primary()
    begin(former)
    try:
        wait_until(lambda: another_is_primary(event.cluster, former), timeout_s=60)
        event.seen.go_on()
    finally:
        end(former)
    event.end(f"{what}, and back", event.cluster.ttl_s + MARGIN_S)


def another_is_primary(cluster: PatroniCluster, former: Node) -> bool:
    """True if HAProxy passes connections to another node."""
    with suppress(psycopg.OperationalError):
        return cluster.primary() is not former
    return False


def test_a_frozen_synchronous_standby(event: Event) -> None:
    standby = event.cluster.synchronous()
    assert standby is not None
    standby.freeze()
    try:
        wait_until(lambda: event.cluster.synchronous() not in {None, standby}, timeout_s=60)
        event.seen.go_on()
    finally:
        standby.thaw()
    event.end("the synchronous standby frozen, and back", event.cluster.ttl_s + MARGIN_S)


def test_a_primary_that_takes_no_writes(event: Event) -> None:
    node, seen = event.cluster.primary(), event.seen
    writers, readers = [[f"{name} {size}" for size in POOL_SIZES] for name in ("writer", "reader")]
    node.make_read_only()
    try:
        wait_until_refused(seen, writers, 5)
        written = [len(seen.done[each]) for each in writers]
        wait_until_refused(seen, writers, 20)
        assert [len(seen.done[each]) for each in writers] == written
    finally:
        node.make_writable()
    again = time.monotonic()
    seen.go_on()
    reading, writing = seen.longest_s(event.since, *readers), seen.longest_s(again, *writers)
    measured = (
        f"reads go on, longest without one {reading:.1f} s; writes again after {writing:.1f} s"
    )
    event.figures.add(TITLE, "the primary takes no writes", "503 for writes, then well", measured)
    assert event.failures == []
    assert max(reading, writing) <= QUICK_S, measured


def wait_until_refused(seen: Seen, names: list[str], times: int) -> None:
    """Wait until each of these callers was refused this many further times."""
    before = dict(seen.refused)
    wait_until(lambda: all(seen.refused[each] >= before.get(each, 0) + times for each in names))


def test_nothing_acknowledged_is_lost(event: Event, fronts: list[Front]) -> None:
    lost, number = set(), 0
    for front in fronts:
        for of, names in enumerate(front.acknowledged):
            acknowledged = set(names)
            number += len(acknowledged)
            lost |= {(front.pool_size, of, name) for name in acknowledged - front.saved(of)}
    what = "rows lost that were acknowledged during all of this"
    event.figures.add(TITLE, what, "0", f"{len(lost)} of {number:,}")
    assert lost == set()


def test_a_rolling_restart_fails_no_request(fronts: list[Front], figures: Figures) -> None:
    front = fronts[0]
    requests = {f"reader {number}": front.reader() for number in range(4)}
    requests |= {f"querier {number}": front.querier() for number in range(4)}
    with callers(requests, pause_s=0.01) as seen:
        seen.go_on()
        since = time.monotonic()
        for web in front.webs:
            seen.go_on()
            web.restart()
        seen.go_on()
        wait_until(lambda: sum(map(len, seen.done.values())) >= REQUESTS, timeout_s=120)
    answered = sum(map(len, seen.done.values()))
    failed = len(seen.failures) + sum(seen.refused.values())
    longest_s = max(seen.longest_s(since, name) for name in requests)
    what = "rolling restart of two web servers: failed requests"
    figures.add(
        TITLE,
        what,
        f"0 of {REQUESTS:,}",
        f"{failed} of {answered:,}; longest time without one {longest_s:.1f} s",
    )
    assert (seen.failures, dict(seen.refused)) == ([], {})
