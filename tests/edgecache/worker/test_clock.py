"""The worker's estimate of the brain's clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgecache.worker.clock import BrainClock


class Machine:
    """A machine whose uptime a test sets."""

    def __init__(self) -> None:
        self.uptime = 1000.0
        self.clock = BrainClock(lambda: self.uptime)

    def hear(self, offset_s: float, *, there_s: float = 0.01, back_s: float = 0.01) -> None:
        """Send a heartbeat with these delays to a brain whose clock is this far ahead."""
        sent = self.uptime
        self.uptime += there_s
        brain_now = self.uptime + offset_s
        self.uptime += back_s
        self.clock.learn(brain_now, sent=sent, received=self.uptime)
        self.uptime += 10


def test_the_clock_is_unknown_before_the_first_response() -> None:
    clock = BrainClock()
    assert not clock.is_known
    with pytest.raises(LookupError):
        clock.now()


@given(
    st.floats(-1e9, 1e9),
    st.lists(st.tuples(st.floats(0.001, 3), st.floats(0.001, 3)), min_size=1, max_size=20),
)
def test_the_error_is_at_most_half_the_fastest_recent_round_trip(
    offset_s: float, trips: list[tuple[float, float]]
) -> None:
    machine = Machine()
    for there_s, back_s in trips:
        machine.hear(offset_s, there_s=there_s, back_s=back_s)
    fastest = min(there + back for there, back in trips[-8:])
    error = machine.clock.now() - (machine.uptime + offset_s)
    assert abs(error) <= fastest / 2 + 1e-6


def test_a_slow_response_does_not_degrade_the_estimate() -> None:
    machine = Machine()
    machine.hear(100)
    machine.hear(100, there_s=0.01, back_s=60)
    assert machine.clock.now() == pytest.approx(machine.uptime + 100, abs=0.1)


def test_a_slow_first_response_is_used() -> None:
    machine = Machine()
    machine.hear(100, there_s=0.01, back_s=20)
    assert machine.clock.now() == pytest.approx(machine.uptime + 100, abs=11)


def test_a_changed_clock_is_followed_immediately() -> None:
    machine = Machine()
    for _ in range(8):
        machine.hear(100)
    machine.hear(-500)
    assert machine.clock.now() == pytest.approx(machine.uptime - 500, abs=0.1)


def test_the_clock_advances_between_responses() -> None:
    machine = Machine()
    machine.hear(100)
    before = machine.clock.now()
    machine.uptime += 25
    assert machine.clock.now() == before + 25
