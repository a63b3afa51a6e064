"""The load: tenants of SQL and of objects, who remember what was acknowledged."""

import hashlib
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.soak.installation import Installation
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Keys

SQL_TENANTS: Final = 4
OBJECT_CALLERS: Final = 4
# Between two requests of a caller: the load is bounded.
PAUSE_S: Final = 0.05
TIMEOUT_S: Final = 60.0
# A connection that broke belongs to a kill that the client noticed this much later.
LATE_S: Final = 5.0
LATER: Final = frozenset({429, 503})
# Beside a kill also: that the outcome is unknown, that a transaction has ended.
CUT: Final = frozenset({410, 502})
SIZES: Final = (200, 20_000, 300_000)
KEYS: Final = 12
NOT_THERE: Final = ""
ROWS: Final = "SELECT g AS id, repeat('x', 50) AS text FROM generate_series(1, {}) AS g"
CSV: Final = b"id,text\n" + b"-7,imported\n" * 500
Answered = tuple[int, bytes]


class Client:
    """One keep-alive connection of a member, whose session is refreshed."""

    def __init__(self, installation: Installation, pair: dict[str, Any]) -> None:
        self._port, self._pair = installation.port, pair
        self._link = self._connect()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answered:
        """Send a request and read its answer. Raises OSError, HTTPException."""
        if self._pair["access_expires_at"] < time.time() + 60:
            self._refresh()
        token = self._pair["access_token"]
        given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} | headers
        return self._send(method, path, body, given)

    def disconnect(self) -> None:
        """Close the connection; the next call opens one."""
        self._link.close()

    def sql(self, query: str, **members: Any) -> Answered:
        """Run a statement."""
        return self.call("POST", "/v1/sql", {"query": query, **members})

    def stream(self) -> Answered:
        """Read rows as NDJSON. A stream that ends with an error has broken off."""
        status, body = self.sql(ROWS.format(20_000), format="ndjson")
        last = body.rstrip().rpartition(b"\n")[2]
        if status == http.HTTPStatus.OK and not last.startswith(b'{"end"'):
            raise http.client.IncompleteRead(last)
        return status, body

    def import_rows(self) -> Answered:
        """Import a CSV file."""
        path = "/v1/sql/import?table=soaked&columns=id,text"
        return self.call("POST", path, CSV, **{"Content-Type": "text/csv"})

    def transaction(self) -> Answered:
        """Open an interactive transaction, use it, and commit it or not."""
        status, body = self.call("POST", "/v1/sql/transactions")
        if status != http.HTTPStatus.CREATED:
            return status, body
        path = f"/v1/sql/transactions/{json.loads(body)['id']}"
        for number in (1, 2):
            statement = {"number": number, "query": "INSERT INTO soaked VALUES (-1, 'in')"}
            self.call("POST", f"{path}/statements", statement)
        if random.random() < 0.5:  # noqa: S311 - a load
            return self.call("POST", f"{path}/commit")
        return self.call("DELETE", path)

    def hang_up(self) -> Answered:
        """Disconnect during a statement."""
        body = json.dumps({"query": "SELECT pg_sleep(20)"}).encode()
        headers = {
            "Authorization": f"Bearer {self._pair['access_token']}",
            "Content-Type": "application/json",
        }
        self._link.request("POST", "/v1/sql", body, headers)
        self._link.close()
        self._link = self._connect()
        return 0, b""

    def _refresh(self) -> None:
        body = {"refresh_token": self._pair["refresh_token"]}
        headers = {"Content-Type": "application/json"}
        status, answer = self._send("POST", "/v1/auth/refresh", body, headers)
        if status == http.HTTPStatus.OK:
            self._pair = json.loads(answer)

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Answered:
        sent = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        try:
            self._link.request(method, path, sent, headers)
            response = self._link.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._link.close()
            self._link = self._connect()
            raise

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)


# What a member asks for, with the statuses that are right at any time, by name.
WORK: Final[dict[str, tuple[Callable[[Client], Answered], frozenset[int]]]] = {
    "select": (lambda client: client.sql("SELECT 1"), frozenset({200})),
    "whoami": (lambda client: client.call("GET", "/v1/whoami"), frozenset({200})),
    "environments": (lambda client: client.call("GET", "/v1/environments"), frozenset({200})),
    "buckets": (lambda client: client.call("GET", "/v1/cache/buckets"), frozenset({200})),
    "rows": (lambda client: client.sql(ROWS.format(5_000)), frozenset({200})),
    "ndjson": (Client.stream, frozenset({200})),
    "csv": (lambda client: client.sql(ROWS.format(20_000), format="csv"), frozenset({200})),
    "wrong": (lambda client: client.sql("SELECT nonesuch"), frozenset({400})),
    "slow": (lambda client: client.sql("SELECT pg_sleep(5)", timeout_ms=50), frozenset({400})),
    "array": (lambda client: client.sql("SELECT array_fill(1, ARRAY[300000])"), frozenset({200})),
    "import": (Client.import_rows, frozenset({200})),
    "delete": (lambda client: client.sql("DELETE FROM soaked WHERE id < 0"), frozenset({200})),
    "schema": (lambda client: client.call("GET", "/v1/sql/schema"), frozenset({200})),
    "transaction": (Client.transaction, frozenset({200, 204})),
    "hang-up": (Client.hang_up, frozenset({0})),
}


def _expect(answered: Answered, expected: int) -> bytes:
    """Return an answer's body. Raises RuntimeError for another status."""
    status, body = answered
    if status != expected:
        raise RuntimeError(f"{status}: {body[:500]!r}")
    return body


class Load:
    """Threads that call until the block ends. faults: what no client should see."""

    def __init__(self, installation: Installation) -> None:
        self.faults: list[str] = []
        self.answers = Counter[tuple[str, int]]()
        self.broken = 0
        self._chance = random.Random()  # noqa: S311 - a load
        self._installation = installation
        self._over = threading.Event()
        self._began = time.monotonic()
        self._troubles: list[list[float]] = []
        # By tenant, the numbers of rows; by key, the digests that it may have.
        self._acknowledged: list[set[int]] = [set() for _ in range(SQL_TENANTS)]
        self._digests: list[dict[str, set[str]]] = [{} for _ in range(OBJECT_CALLERS)]

    @property
    def count(self) -> int:
        """How many answers came."""
        return sum(self.answers.values())

    def __enter__(self) -> None:
        """Create the tenants and start."""
        self._clients = [self._member(number) for number in range(SQL_TENANTS)]
        made = self._installation.manage("bootstrap")
        access = made["cache"]
        keys = Keys(made["org_id"], 0, access["access_key_id"], access["secret_access_key"])
        self._signer = Signer(keys, self._installation.s3_url)
        self._bucket = access["bucket"]
        self._public = self._public_bucket(made)
        callers: list[Callable[[], None]] = [
            *(lambda at=at: self._use_sql(at) for at in range(SQL_TENANTS)),
            *(lambda at=at: self._use_objects(at) for at in range(OBJECT_CALLERS)),
            self._read_publicly,
        ]
        self._threads = [threading.Thread(target=self._repeat, args=(each,)) for each in callers]
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_exc: object) -> None:
        """Stop."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """While something was killed, connections may break."""
        self._troubles.append([time.monotonic(), float("inf")])
        yield
        self._troubles[-1][1] = time.monotonic() + LATE_S

    def lost(self) -> list[str]:
        """Read everything; return what was acknowledged and is not there."""
        found = []
        for at, client in enumerate(self._clients):
            query = "SELECT coalesce(json_agg(id), '[]') AS ids FROM soaked WHERE id > 0"
            body = _expect(client.sql(query), http.HTTPStatus.OK)
            there = set(json.loads(body)["rows"][0]["ids"])
            gone = self._acknowledged[at] - there
            if gone or not there:
                found.append(f"tenant {at}: {len(gone)} acknowledged rows of {len(there)} are gone")
        for digests in self._digests:
            for key, possible in digests.items():
                found += self._check(key, possible)
        return found

    def report(self) -> str:
        """Return the answers by kind of request and status."""
        lines = [f"{kind} {status}: {count}" for (kind, status), count in self.answers.items()]
        rows = sum(map(len, self._acknowledged))
        kept = sum(map(len, self._digests))
        sums = (
            f"connections that a kill broke: {self.broken}; rows and keys compared: {rows}, {kept}"
        )
        return "\n".join([*sorted(lines), sums])

    def _member(self, number: int) -> Client:
        manage, email = self._installation.manage, f"soak{number}@example.com"
        home = manage("createorganization", f"Soak {number}")
        words = (
            "--organization",
            str(home["org_id"]),
            "--role",
            "admin",
            "--verified",
            "--no-password",
        )
        manage("createuser", *words, email)
        client = Client(self._installation, manage("issuetoken", email))
        _expect(client.sql("CREATE TABLE soaked (id int, text text)"), http.HTTPStatus.OK)
        # The server ends an idle connection before the others are there.
        client.disconnect()
        return client

    def _public_bucket(self, made: dict[str, Any]) -> str:
        """Create a bucket that all may read; return its path."""
        self._installation.manage("grantcredits", str(made["org_id"]), "1000", "--reason", "soak")
        host = urlsplit(self._installation.url).netloc
        link = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
        headers = {
            "Authorization": f"Bearer {made['dev_token']}",
            "Content-Type": "application/json",
        }
        body = json.dumps({"name": "soak-public", "is_public": True})
        link.request("POST", "/v1/cache/buckets", body, headers)
        answer = link.getresponse()
        said = json.loads(_expect((answer.status, answer.read()), http.HTTPStatus.CREATED))
        stored = self._signer.send("PUT", "/soak-public/logo.svg", b"<svg/>" * 500)
        _expect((stored.status, stored.body), http.HTTPStatus.OK)
        return f"/p/{said['public_name']}/logo.svg"

    def _repeat(self, request: Callable[[], None]) -> None:
        while not self._over.wait(PAUSE_S):
            began = time.monotonic()
            try:
                request()
            except (OSError, http.client.HTTPException) as error:
                if self._is_excused(began):
                    self.broken += 1
                else:
                    self._fault(f"{error!r} {getattr(error, '__notes__', '')}")
            except Exception as error:  # noqa: BLE001 - a fault of the load itself is one as well
                self._fault(repr(error))

    def _fault(self, sentence: str) -> None:
        self.faults.append(f"after {time.monotonic() - self._began:.0f} s: {sentence}")

    def _is_excused(self, began: float) -> bool:
        now = time.monotonic()
        return any(began < until and now > since for since, until in self._troubles)

    def _note(self, kind: str, answered: Answered, expected: frozenset[int]) -> bool:
        """Count an answer; return True if it is the expected one."""
        status, body = answered
        self.answers[kind, status] += 1
        if status in CUT and self._is_excused(time.monotonic()):
            return False
        if status not in expected | LATER:
            self._fault(f"{kind}: {status} {body[:300]!r}")
        return status in expected

    def _use_sql(self, at: int) -> None:
        client, mine = self._clients[at], self._acknowledged[at]
        number = len(mine) + 1_000_000 * self._chance.randrange(1, 2000)
        written = client.sql("INSERT INTO soaked VALUES ($1, 'kept')", params=[number])
        if self._note("insert", written, frozenset({200})):
            mine.add(number)
        kind = self._chance.choice([*WORK])
        work, expected = WORK[kind]
        try:
            answered = work(client)
        except (OSError, http.client.HTTPException) as error:
            error.add_note(kind)
            raise
        self._note(kind, answered, expected)

    def _use_objects(self, at: int) -> None:
        digests = self._digests[at]
        key = f"/{self._bucket}/soak{at}/{self._chance.randrange(KEYS)}"
        if self._chance.random() < 0.6 and key in digests:
            self.faults += self._check(key, digests[key])
            return
        body = self._chance.randbytes(self._chance.choice(SIZES))
        is_write = self._chance.random() < 0.8
        digest = hashlib.sha256(body).hexdigest() if is_write else NOT_THERE
        # Until it is acknowledged, both are right.
        digests.setdefault(key, {NOT_THERE}).add(digest)
        method, expected = ("PUT", 200) if is_write else ("DELETE", 204)
        answer = self._signer.send(method, key, body if is_write else b"")
        if self._note(method, (answer.status, answer.body), frozenset({expected})):
            digests[key] = {digest}

    def _check(self, key: str, possible: set[str]) -> list[str]:
        answer = self._signer.send("GET", key)
        if not self._note("GET", (answer.status, answer.body), frozenset({200, 404})):
            return []
        found = hashlib.sha256(answer.body).hexdigest() if answer.status == 200 else NOT_THERE
        return [] if found in possible else [f"{key} has other bytes than were acknowledged"]

    def _read_publicly(self) -> None:
        link = http.client.HTTPConnection(urlsplit(self._installation.s3_url).netloc, timeout=30)
        try:
            link.request("GET", self._public)
            answer = link.getresponse()
            self._note("public", (answer.status, answer.read()), frozenset({200}))
        finally:
            link.close()
