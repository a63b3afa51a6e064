"""Pages of unfinished uploads, however many there are of a key."""

from typing import Any

import pytest

from edgecache.brain.core.values import BucketInfo
from edgecache.brain.db.database import Row
from edgecache.brain.s3.multipart import uploads
from tests.edgecache.brain.brains import Brain, Rows

ADD = (
    "INSERT INTO brain_upload (id, bucket_id, key, content_type, headers, metadata)"
    " VALUES (%s, %s, %s, '', '{}', '{}')"
)
# In the order of their bytes.
UPLOADS = [("a", "B"), ("a", "a"), ("a/1", "c"), ("a/2", "d"), ("b", "A"), ("b", "b"), ("é", "e")]


async def page(
    brain: Brain, bucket: BucketInfo, *, delimiter: str, after: tuple[str, str], limit: int
) -> list[Row]:
    """Return uploads and groups after a key and an upload."""
    key, upload_id = after
    return await uploads.page(
        brain.database,
        bucket,
        prefix="",
        delimiter=delimiter,
        key=key,
        upload_id=upload_id,
        limit=limit,
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
@pytest.mark.parametrize("delimiter", ["", "/"])
async def test_pages_have_each_upload_or_group_once_and_in_order(
    brain: Brain, rows: Rows, delimiter: str, limit: int
) -> None:
    bucket = await brain.bucket()
    for key, upload_id in UPLOADS:
        rows.run(ADD, [upload_id, bucket.id, key])
    found: list[tuple[str, str]] = []
    at = ("", "")

    while rest := await page(brain, bucket, delimiter=delimiter, after=at, limit=limit):
        found += [(row.grouped or row.key, "" if row.grouped else row.id) for row in rest]
        assert len(rest) <= limit
        at = found[-1]

    grouped = [*UPLOADS[:2], ("a/", ""), *UPLOADS[4:]]
    assert found == (grouped if delimiter else UPLOADS)


@pytest.mark.slow
async def test_a_page_of_very_many_uploads_of_one_key_takes_no_longer(
    brain: Brain, rows: Rows
) -> None:
    bucket = await brain.bucket()
    rows.run(
        "INSERT INTO brain_upload (id, bucket_id, key, content_type, headers, metadata)"
        " SELECT md5(n::text), %s, 'k', '', '{}', '{}' FROM generate_series(1, 4000) n",
        [bucket.id],
    )

    found = await page(brain, bucket, delimiter="", after=("", ""), limit=1001)

    assert [row.id for row in found] == sorted(row.id for row in found)
    assert len(found) == 1001


async def test_a_page_reads_few_uploads_however_many_keys_have_many(
    brain: Brain, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await brain.bucket()
    rows.run(
        "INSERT INTO brain_upload (id, bucket_id, key, content_type, headers, metadata)"
        " SELECT k || '-' || n, %s, 'key' || k, '', '{}', '{}'"
        " FROM generate_series(1, 50) k, generate_series(1, 50) n",
        [bucket.id],
    )
    rows.run("ANALYZE brain_upload")
    monkeypatch.setattr(uploads, "PAGE", f"EXPLAIN (ANALYZE, FORMAT JSON) {uploads.PAGE}")

    ((found,),) = await page(brain, bucket, delimiter="", after=("", ""), limit=60)

    assert _rows_read(found[0]["Plan"]) < 400


def _rows_read(plan: dict[str, Any]) -> float:
    """Return how many rows of the table a step and those below it have read."""
    own = plan["Actual Rows"] * plan["Actual Loops"] if "Relation Name" in plan else 0
    return float(own) + sum(_rows_read(each) for each in plan.get("Plans", []))
