"""Any pages of the brain: each line counts once and none delays the others."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from billing import tasks
from billing.models.usage import Charge, Progress, RejectedLine, UsageLine
from billing.usage import charges_and_shares, usage_import
from edgecache.api import client
from tests.billing.support import consumer, line, page, store


class Brain:
    """Numbers lines, and makes a new one whenever it is asked, as under constant traffic."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.wrong: dict[str, str] = {}

    def use(self) -> None:
        now = timezone.now().isoformat()
        self.lines.append(line(hits=1, used_at=now, id=len(self.lines) + 1))

    def call(self, _method: str, _path: str, *, query: Mapping[str, int], **_: Any) -> Any:
        self.use()
        found = [one for one in self.lines if one["id"] > query["after"]][: query["limit"]]
        answer = page(*found)
        answer["sums"] |= self.wrong
        return answer | {"next": found[-1]["id"] if found else query["after"]}


@pytest.fixture
def brain(monkeypatch: pytest.MonkeyPatch) -> Brain:
    brain = Brain()
    monkeypatch.setattr(client, "call", brain.call)
    return brain


def imported() -> int:
    return usage_import.import_usage(now=timezone.now()).lines


def test_lines_that_arrive_during_a_run_wait_for_the_next_run(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_import, "PAGE_LINES", 3)
    for _ in range(4):
        brain.use()
    assert [imported() for _ in range(2)] == [8, 1]
    assert UsageLine.objects.count() == len(brain.lines) == 9


@pytest.mark.parametrize("is_ahead", [False, True], ids=["fewer lines", "more lines"])
def test_a_brain_that_reuses_numbers_of_lines_is_read_from_the_start(
    brain: Brain, is_ahead: bool
) -> None:
    for _ in range(5):
        brain.use()
    assert imported() == 6
    del brain.lines[3:]
    for _ in range(5 * is_ahead):
        brain.use()
    restored = len(brain.lines) - 3
    # Each of the two questions makes a line.
    assert imported() == restored + 2
    assert imported() == 1


def test_a_brain_from_a_backup_charges_nothing_again(brain: Brain) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)

    def count(**fields: Any) -> None:
        fields |= {"used_at": hour.isoformat(), "id": len(brain.lines) + 1}
        brain.lines.append(line(**fields))

    def charged(kind: str) -> list[int]:
        rows = UsageLine.objects.filter(kind=kind, used_at=hour).order_by("pk")
        return [int(row.quantity) for row in rows]

    count(hits=5, bucket_id=6)
    count(hits=250, misses=2)
    count(storage_byte_hours="7", node_id=None)
    assert imported() == 5
    # The backup has the first of these, and the counts of the second at that time.
    del brain.lines[1:]
    count(hits=100)
    count(storage_byte_hours="7", node_id=None)
    # It charges what was not charged, and all later usage.
    count(hits=3, node_id=str(UUID(int=78)))
    count(misses=4, node_id=None)
    imported()
    count(hits=6, node_id=str(UUID(int=78)))
    imported()
    assert charged("hit") == [5, 250, 3, 6]
    assert (charged("miss"), charged("storage")) == ([2, 4], [7])
    reasons = RejectedLine.objects.values_list("reason", flat=True)
    assert list(reasons) == ["charged_before_restore"] * 2


def test_an_import_that_is_killed_when_it_finds_a_backup_charges_nothing_again(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0).isoformat()
    brain.lines += [line(id=1, used_at=hour, hits=1), line(id=2, used_at=hour, hits=250)]
    assert imported() == 3
    # The counts of the second, at the time of the backup.
    brain.lines[1:] = [line(id=2, used_at=hour, hits=100)]

    def killed(**_fields: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress.objects, "update_or_create", killed)
        with pytest.raises(KeyboardInterrupt):
            imported()
    imported()
    assert not UsageLine.objects.filter(quantity=100).exists()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1, 0), (1, 2, 2, 1, 0)])
def test_pages_in_any_order_and_twice_charge_the_same(order: tuple[int, ...]) -> None:
    lines = [line(hits=hits) for hits in (1, 20, 300)]
    for number in order:
        store(lines[number])
        charges_and_shares.settle()
    assert consumer() == (0, 0, -32_100)
    assert Charge.objects.count() == len(lines)


def test_a_page_that_is_refused_does_not_hold_up_what_was_imported(brain: Brain) -> None:
    assert imported() == 1
    brain.wrong = {"hits": "7"}
    with pytest.raises(ValueError, match="sum of hits"):
        tasks.settle(0)
    assert Charge.objects.count() == 1
