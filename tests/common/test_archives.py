"""Archives of records: every kind of value that the layers have, complete or absent."""

import json
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from common import archives
from common.archives import ArchiveRefused


def test_every_kind_of_value_is_written(tmp_path: Path) -> None:
    values = {
        "at": datetime(2026, 11, 23, 9, 30, tzinfo=UTC),
        "day": date(2026, 11, 23),
        "id": UUID(int=1),
        "sum": Decimal(2**70),
        "share": Decimal("0.5"),
        "text": "Wörter",
        "none": None,
    }
    path = tmp_path / "all.zip"
    with archives.new_archive(path, limit_bytes=2**20, timeout_s=60) as archive:
        archive.records("all.ndjson", [values])
        archive.note("Something.")
        archive.close({"number": 1})
    with zipfile.ZipFile(path) as opened:
        assert json.loads(opened.read("all.ndjson")) == {
            "at": "2026-11-23T09:30:00+00:00",
            "day": "2026-11-23",
            "id": "00000000-0000-0000-0000-000000000001",
            "sum": 2**70,
            "share": "0.5",
            "text": "Wörter",
            "none": None,
        }
        manifest = json.loads(opened.read("manifest.json"))
    assert manifest == {"number": 1, "files": ["all.ndjson"], "missing": ["Something."]}


def write(path: Path, **bounds: int) -> None:
    """Write an archive of one record."""
    with archives.new_archive(path, **bounds) as archive:
        archive.records("a.ndjson", [{"a": 1}])
        archive.close({})


@pytest.mark.parametrize(
    ("bounds", "said"),
    [({"limit_bytes": 0, "timeout_s": 60}, "larger"), ({"limit_bytes": 9, "timeout_s": 0}, "long")],
)
def test_nothing_is_left_of_one_that_is_refused(
    tmp_path: Path, bounds: dict[str, int], said: str
) -> None:
    path = tmp_path / "all.zip"
    with pytest.raises(ArchiveRefused, match=said):
        write(path, **bounds)
    assert not list(tmp_path.iterdir())
