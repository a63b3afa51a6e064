"""Every operation of the document, with generated data, by every kind of caller.

Nothing crashes, and every response is one that the document declares. In CI few examples, the same
each time; ``make fuzz`` takes as many as ``ZFUZZ_EXAMPLES`` says, others each time.
"""

import os
from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from schemathesis import Case, GenerationMode

from tests.rules.fuzzing.operations import LABELS, can_be_invalid, operations
from tests.rules.fuzzing.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
EXAMPLES = int(os.environ.get("ZFUZZ_EXAMPLES", "0"))
FEW = 2


def run(
    label: str, mode: GenerationMode, world: World, *, names: Iterable[str], is_known: bool
) -> None:
    """Send generated examples of an operation as each of these callers."""

    @hypothesis.settings(
        max_examples=EXAMPLES or FEW,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        # A failure names its request; to look for a smaller one takes long.
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @hypothesis.given(operations()[label].as_strategy(generation_mode=mode))
    def send_as_each(case: Case[Any]) -> None:
        for name in names:
            hypothesis.note(f"sent as {name}")
            world.send(case, name, is_known=is_known)

    send_as_each()


@pytest.mark.parametrize("label", LABELS)
def test_an_operation_answers_as_documented(label: str, world: World) -> None:
    run(label, GenerationMode.POSITIVE, world, names=world.callers, is_known=True)
    if can_be_invalid(label):
        run(label, GenerationMode.NEGATIVE, world, names=world.callers, is_known=True)
    if "{" in label:
        run(label, GenerationMode.POSITIVE, world, names=["admin"], is_known=False)
