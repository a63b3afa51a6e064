"""Every attack through ``POST /v1/sql``: its outcome, and that nothing else changed."""

from collections.abc import Iterator

import pytest

from sqlgateway.isolation.attacks import REFUSED, Attack, AttackStep, Result, filled, load, subjects
from sqlgateway.isolation.check import RESET, SETUP, STATE, names_of
from sqlgateway.pg import pool
from sqlgateway.pg.changed_roles import ROLE_CHECK
from tests.sqlgateway.support import Answer, Caller

pytestmark = pytest.mark.slow


class World:
    """Alice's and Charlie's databases, and what each role sees in them."""

    def __init__(self, alice: Caller, charlie: Caller) -> None:
        self.alice, self.charlie = alice, charlie
        for someone in (alice, charlie):
            assert someone.sql(SETUP).status == 200
        self.names = names_of(alice.database, charlie.database)
        self.before = self.state()

    def state(self) -> list[str]:
        roles = [self.alice.be(role) for role in ("admin", "operator", "reader")]
        return [str(someone.value(STATE)) for someone in (*roles, self.charlie)]

    def run(self, attack: Attack) -> Iterator[str]:
        """Yield what went wrong."""
        assert self.alice.sql(RESET).status == 200
        for step in attack.steps:
            result = self._send(step)
            if not result.is_one_of(step.expect):
                yield f"{step.role}: {step.sql}: {result}, not {step.expect}"
        if self.state() != self.before:
            yield f"{attack.name}: another request's answer changed"

    def _send(self, step: AttackStep) -> Result:
        someone = (self.charlie if step.of_other else self.alice).be(step.role)
        if step.is_fresh:
            pool.CONNECTION_POOL.clear()
        return _result(someone.sql(filled(step.sql, self.names), **step.options))


def _result(answer: Answer) -> Result:
    if answer.status == 200:
        rows = answer.body["rows"]
        value = next(iter(rows[0].values()), None) if rows else None
        return Result(frozenset({"ok"}), str(value))
    outcomes = {answer.code, answer.body.get("sqlstate", "")}
    # Never an error of the gateway or of the server: those are 5xx.
    return Result(frozenset(outcomes | {REFUSED} if answer.status in {400, 403} else outcomes))


@pytest.fixture
def world(alice: Caller, charlie: Caller) -> World:
    """Return two tenants with the same few tables."""
    return World(alice, charlie)


@pytest.mark.parametrize("subject", subjects())
def test_an_attack_has_its_outcome_and_no_other_effect(world: World, subject: str) -> None:
    wrong = [sentence for attack in load(subject) for sentence in world.run(attack)]

    assert wrong == [], "\n".join(wrong)
    ROLE_CHECK.run()
    pool.CONNECTION_POOL.clear()
    assert world.state() == world.before


def test_there_are_many_attacks_with_a_reason_each() -> None:
    attacks = [attack for subject in subjects() for attack in load(subject)]
    names = [(attack.subject, attack.name, attack.role) for attack in attacks]

    assert len(attacks) > 300
    assert len(names) == len(set(names))
    assert all(attack.reason and attack.steps for attack in attacks)
