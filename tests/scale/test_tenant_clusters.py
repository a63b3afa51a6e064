"""A tenants' cluster on Patroni, behind PgBouncer, beside a plain one; nodes of it fail."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_django import Settings

from operations.embedded.throwaway import throwaway_cluster
from sqlgateway.models import Database
from tests.commands import facts
from tests.scale.figures import Figures
from tests.scale.patroni import BINARIES, PatroniCluster, patroni_cluster
from tests.scale.tenants import (
    Asker,
    Outcome,
    Tenant,
    answers_of,
    ask,
    asking,
    logged,
    p95_ms,
    provision,
    reader,
    tenants,
    window,
    writer,
)
from tests.sqlgateway.pooler.pgbouncer import PgBouncer, program
from tests.waiting import wait_until
from tests.web_process import Web, web_process

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TITLE: Final = "A tenants' cluster on Patroni, behind PgBouncer"
# Environments on each of the two clusters; in each, one client writes and one reads.
ENVIRONMENTS: Final = 4
EVERY_S: Final = 0.2
# About five seconds of answers.
ANSWERS: Final = 25
FAILOVER_S: Final = 8.0
# What a node's loss may take longer than Patroni's ttl.
MARGIN_S: Final = 5.0
TRANSACTIONS: Final = "/v1/sql/transactions"
# Of a row that is written in a transaction which is never committed.
UNCOMMITTED: Final = -1
OVER: Final = (410, "transaction_over", "rolled_back")
ENDED: Final = (503, "57P01")
ANSWERED: Final = frozenset({200, 429, 503})
# Of a write whose connection was cut.
UNKNOWN: Final = (502, "outcome_unknown")


@pytest.fixture(scope="module")
def patroni() -> Iterator[PatroniCluster]:
    """Return three nodes that replicate synchronously."""
    with patroni_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def pooler(patroni: PatroniCluster) -> Iterator[PgBouncer]:
    """Return a PgBouncer before Patroni's HAProxy, as docs/scaling.md configures it."""
    assert program() is not None, "PgBouncer is missing"
    made = PgBouncer(patroni.url)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def plain_url() -> Iterator[str]:
    """Return the URL of a plain server of the same version: between two, databases move."""
    with throwaway_cluster({**os.environ, "ZPG_BINDIR": BINARIES}) as url:
        yield url


@pytest.fixture
def web(plain_url: str, settings: Settings, tmp_path: Path) -> Iterator[Web]:
    """Return a web server whose first cluster is the plain one."""
    settings.SQL = replace(settings.SQL, cluster_url=plain_url)
    with web_process(tmp_path, ZSQL_CLUSTER_URL=plain_url) as made:
        yield made


@pytest.fixture
def add(pooler: PgBouncer, tmp_path: Path) -> Callable[[], None]:
    """Return a function that adds the cluster, on which all further databases are placed."""

    def run() -> None:
        file = tmp_path / "url"
        file.write_text(pooler.url)
        # The smallest share of a capacity is used. PostgreSQL 15 is accepted with a finding.
        options = ("--capacity", "1000000", "--accept-findings")
        facts("addcluster", "patroni", "--url-file", str(file), *options)

    return run


def test_tenants_are_isolated(web: Web, add: Callable[[], None]) -> None:
    add()
    (report,) = facts("checkisolation", "patroni")["clusters"]
    assert (report["cluster"], report["findings"]) == ("patroni", [])


def test_an_environment_moves_to_patroni_and_back_while_it_is_used(
    web: Web, add: Callable[[], None], figures: Figures
) -> None:
    (tenant,) = tenants(1, "moved")
    provision(web, [tenant])
    add()
    asker = writer(tenant, every_s=EVERY_S)
    with asking(web, [asker]):
        for name in ("patroni", "default"):
            window([asker], ANSWERS)
            where = (str(tenant.organization_id), tenant.slug)
            moved = facts("moveenvironment", *where, "--to", name)
            window([asker], ANSWERS)
            assert Database.objects.get().cluster.name == name
            figures.add(
                TITLE,
                f"writes of an environment wait while it moves to the cluster `{name}`",
                "",
                f"{moved['stopped_ms'] / 1000:.1f} s",
            )
    _check_log(web, asker)
    _check_answers([asker])


class Transaction:
    """An interactive transaction that has written, and is open."""

    def __init__(self, web: Web, tenant: Tenant) -> None:
        self._web, self._tenant = web, tenant
        status, body = ask(web, tenant, TRANSACTIONS, {})
        assert status == 201, body
        self._path = f"{TRANSACTIONS}/{body['id']}"
        assert self.run(1)[0] == 200

    def run(self, number: int) -> tuple[int, Any]:
        """Write; return the status and the body."""
        query = "INSERT INTO log VALUES ($1)"
        body = {"number": number, "query": query, "params": [UNCOMMITTED]}
        return ask(self._web, self._tenant, f"{self._path}/statements", body)

    def check_is_over(self) -> None:
        """Check that nothing more runs in it, and what that is answered."""
        status, body = self.run(2)
        # What the server said when it ended the connection is told once.
        if (status, body.get("sqlstate")) != ENDED:
            assert _ending(status, body) == OVER
        assert _ending(*self.run(3)) == OVER
        assert _ending(*ask(self._web, self._tenant, f"{self._path}/commit")) == OVER


def _ending(status: int, body: Any) -> tuple[int, str, str]:
    return status, body.get("code", ""), body.get("outcome", "")


@dataclass
class Stage:
    """The clients of both clusters, while something happens to one of them.

    gaps_s: by what happened, the longest time that a tenant of that cluster had no success, and
    what is promised. quiet, disturbed: what those of the plain one were answered.
    """

    web: Web
    plain: list[Asker]
    pooled: list[Asker]
    gaps_s: dict[str, tuple[float, float]] = field(default_factory=dict)
    quiet: list[Outcome] = field(default_factory=list)
    disturbed: list[Outcome] = field(default_factory=list)

    def disturb(self, what: str, promised_s: float, act: Callable[[], None]) -> None:
        """Let something happen, and wait until each tenant of the cluster is answered again."""
        self.quiet += window(self.plain, ANSWERS)
        transaction = Transaction(self.web, self.pooled[0].tenant)
        began = time.monotonic()
        act()
        transaction.check_is_over()
        acted = time.monotonic()
        wait_until(
            lambda: all(each.successes_since(acted) >= ANSWERS for each in self.pooled),
            timeout_s=4 * promised_s,
        )
        self.disturbed += [outcome for each in self.plain for outcome in each.since(began)]
        gap_s = max(each.longest_gap_s(began) for each in self.pooled)
        self.gaps_s[what] = gap_s, promised_s


def test_tenants_go_on_while_nodes_fail(
    web: Web, patroni: PatroniCluster, add: Callable[[], None], figures: Figures
) -> None:
    beside = tenants(ENVIRONMENTS, "plain")
    provision(web, beside)
    add()
    behind = tenants(ENVIRONMENTS, "pooled")
    provision(web, behind)
    writers = [writer(each, every_s=EVERY_S) for each in (*beside, *behind)]
    readers = [reader(each, every_s=EVERY_S) for each in (*beside, *behind)]
    plain = [*writers[:ENVIRONMENTS], *readers[:ENVIRONMENTS]]
    pooled = [*writers[ENVIRONMENTS:], *readers[ENVIRONMENTS:]]
    stage = Stage(web, plain, pooled)
    with asking(web, [*plain, *pooled]):
        stage.disturb("a switchover", FAILOVER_S, patroni.switchover)
        patroni.wait_healthy()
        stage.disturb("a killed PostgreSQL", FAILOVER_S, patroni.primary().kill_postgres)
        patroni.wait_healthy()
        stage.disturb("a lost node", patroni.ttl_s + MARGIN_S, patroni.primary().lose)
    before, during = p95_ms(stage.quiet), p95_ms(stage.disturbed)
    for what, (gap_s, promised_s) in stage.gaps_s.items():
        words = f"{what}: longest time in which a tenant had no success"
        figures.add(TITLE, words, f"at most {promised_s:.0f} s", f"{gap_s:.1f} s")
    figures.add(
        TITLE,
        "p95 of the plain cluster's tenants meanwhile",
        f"at most twice {before:.1f} ms, which it is otherwise",
        f"{during:.1f} ms",
    )
    assert set(answers_of(plain)) == {(200, "")}, answers_of(plain)
    _check_answers(pooled)
    for each in writers:
        _check_log(web, each)
    assert [what for what, (gap_s, promised_s) in stage.gaps_s.items() if gap_s > promised_s] == []
    assert during <= 2 * before


def _check_answers(askers: list[Asker]) -> None:
    """Check that a tenant whose cluster is replaced gets only the answers that are documented."""
    seen = answers_of(askers)
    assert {answer for answer in seen if answer[0] not in ANSWERED} <= {UNKNOWN}, seen


def _check_log(web: Web, asker: Asker) -> None:
    """Check that all that was acknowledged is there, and nothing that was refused."""
    found = logged(web, asker.tenant)
    assert asker.numbers(200) <= found
    assert asker.numbers(429, 503) & found == set()
    assert UNCOMMITTED not in found
