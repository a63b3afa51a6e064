"""Tenants of a web server, and what each is answered while something happens to a cluster."""

import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import pairwise
from typing import Any, Final

from tests import cast
from tests.waiting import wait_until
from tests.web_process import Web, call

SLUGS: Final = ("live", "sandbox")
# The first statement of each environment, which makes its database.
FIRST: Final = (
    "CREATE TABLE readings (id int PRIMARY KEY, taken_at timestamptz DEFAULT now(), note text);"
    "INSERT INTO readings (id, note) SELECT n, md5(n::text) FROM generate_series(1, 1000) AS n;"
    "CREATE TABLE log (id int)"
)
# A reader's statement whose connection is lost is 503, a writer's is 502 `outcome_unknown`.
READ: Final = {"query": "SELECT count(*) FROM readings", "read_only": True}
# Longer than a statement may run, and than the gateway waits for a server afterwards.
ANSWER_S: Final = 60.0
NO_ANSWER: Final = 0


@dataclass(frozen=True, slots=True)
class Tenant:
    """An environment, and the access token of its admin."""

    organization_id: int
    slug: str
    token: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request.

    number: of the request, from 0.
    status: NO_ANSWER if the web server sent none.
    began, ended: time.monotonic().
    """

    number: int
    status: int
    code: str
    began: float
    ended: float


@dataclass(eq=False)
class Asker:
    """A client that sends its tenant's SQL again and again.

    body: of the request with a number. every_s: the pause between an answer and the next request.
    """

    tenant: Tenant
    body: Callable[[int], dict[str, Any]]
    every_s: float
    outcomes: list[Outcome] = field(default_factory=list)

    def ask_until(self, is_over: threading.Event, web: Web, *, delay_s: float) -> None:
        """Ask until the event is set."""
        is_over.wait(delay_s)
        with closing(HTTPConnection("127.0.0.1", web.port, timeout=ANSWER_S)) as client:
            while not is_over.wait(self.every_s):
                self.outcomes.append(self._ask(client))

    def since(self, moment: float) -> list[Outcome]:
        """Return the outcomes of the requests that began after a moment."""
        return [each for each in self.outcomes if each.began > moment]

    def successes_since(self, moment: float) -> int:
        """Return how many of the requests that began after a moment were answered with 200."""
        return sum(each.status == 200 for each in self.since(moment))

    def numbers(self, *statuses: int) -> set[int]:
        """Return the numbers of the requests with these statuses."""
        return {each.number for each in self.outcomes if each.status in statuses}

    def longest_gap_s(self, since: float) -> float:
        """Return the longest time from one success to the next, counted from a moment on."""
        ends = [each.ended for each in self.outcomes if each.status == 200 and each.ended > since]
        return max(later - earlier for earlier, later in pairwise([since, *ends]))

    def _ask(self, client: HTTPConnection) -> Outcome:
        number, began = len(self.outcomes), time.monotonic()
        try:
            status, body = _send(client, self.tenant, "/v1/sql", self.body(number))
        except (OSError, HTTPException) as error:
            # Its next request opens another connection.
            client.close()
            status, code = NO_ANSWER, repr(error)
        else:
            code = "" if status == 200 else body["code"]
        return Outcome(number, status, code, began, time.monotonic())


def ask(web: Web, tenant: Tenant, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a POST request on a connection of its own; return the answer's status and body."""
    with closing(HTTPConnection("127.0.0.1", web.port, timeout=ANSWER_S)) as client:
        return _send(client, tenant, path, body)


def _send(client: HTTPConnection, tenant: Tenant, path: str, body: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {tenant.token}", "Content-Type": "application/json"}
    client.request("POST", path, None if body is None else json.dumps(body), headers)
    answer = client.getresponse()
    return answer.status, json.loads(answer.read())


def tenants(count: int, name: str) -> list[Tenant]:
    """Make environments, two of each organization; their databases are yet to be made."""
    made: list[Tenant] = []
    for number in range((count + 1) // len(SLUGS)):
        home = cast.organization(f"{name} {number}")
        admin = cast.member(home, f"{name}{number}@example.com")
        made += [Tenant(home.pk, slug, cast.signed_in(admin, slug).access_token) for slug in SLUGS]
    return made[:count]


def provision(web: Web, chosen: Sequence[Tenant]) -> list[float]:
    """Run the first statement of each; return the milliseconds that each took."""
    times = []
    with closing(web.connect()) as client:
        for tenant in chosen:
            began = time.monotonic()
            call(client, "POST", "/v1/sql", {"query": FIRST}, tenant.token)
            times.append((time.monotonic() - began) * 1000)
    return times


def reader(tenant: Tenant, *, every_s: float) -> Asker:
    """Return a client that reads."""
    return Asker(tenant, lambda _: READ, every_s)


def writer(tenant: Tenant, *, every_s: float) -> Asker:
    """Return a client that writes the number of each request into the table log."""

    def body(number: int) -> dict[str, Any]:
        return {"query": "INSERT INTO log VALUES ($1)", "params": [number]}

    return Asker(tenant, body, every_s)


def logged(web: Web, tenant: Tenant) -> set[int]:
    """Return the numbers in the table log."""
    body = {"query": "SELECT id FROM log", "rows": "arrays"}
    return {number for (number,) in web.ask("POST", "/v1/sql", body, tenant.token)["rows"]}


@contextmanager
def asking(web: Web, askers: Sequence[Asker]) -> Iterator[None]:
    """Have everybody ask, each in a thread, until the block ends. Not all begin together."""
    is_over = threading.Event()
    threads = [
        threading.Thread(
            target=each.ask_until,
            args=(is_over, web),
            kwargs={"delay_s": each.every_s * number / len(askers)},
        )
        for number, each in enumerate(askers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def window(askers: Sequence[Asker], answers: int) -> list[Outcome]:
    """Wait until each has had this many more answers; return what all were answered."""
    began = time.monotonic()
    wait_until(
        lambda: all(len(each.since(began)) >= answers for each in askers), timeout_s=ANSWER_S * 2
    )
    return [outcome for each in askers for outcome in each.since(began)]


def p95_ms(outcomes: Sequence[Outcome]) -> float:
    """Return the time that 95 of 100 requests stay within."""
    return statistics.quantiles([(each.ended - each.began) * 1000 for each in outcomes], n=20)[-1]


def answers_of(askers: Sequence[Asker]) -> Counter[tuple[int, str]]:
    """Return how many requests had each status and code."""
    return Counter((each.status, each.code) for asker in askers for each in asker.outcomes)
