"""Multipart uploads, as boto3 makes them and as the parts of a brain see them."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from edgecache.brain.core.values import BucketInfo, WrittenFields
from edgecache.brain.s3.multipart import uploads
from edgecache.brain.stores.upload_parts import StoredPart
from tests.edgecache.brain.brains import Brain

PART = 5 * 2**20
BODIES = (b"a" * PART, b"b" * PART, b"c" * 1000)


class Upload:
    """An upload and the responses to its parts."""

    def __init__(self, s3: Any, key: str = "big", **options: Any) -> None:
        self.s3, self.key = s3, key
        self.options = {"Bucket": "docs", "Key": key}
        begun = s3.create_multipart_upload(**self.options, **options)
        self.id = begun["UploadId"]
        self.options["UploadId"] = self.id
        self.parts: list[dict[str, Any]] = []

    def add(self, number: int, body: bytes, **options: Any) -> dict[str, Any]:
        """Upload a part."""
        answer = self.s3.upload_part(**self.options, PartNumber=number, Body=body, **options)
        row = {"PartNumber": number, "ETag": answer["ETag"]}
        row |= {name: value for name, value in answer.items() if name.startswith("Checksum")}
        self.parts = sorted(
            [each for each in self.parts if each["PartNumber"] != number] + [row],
            key=lambda each: each["PartNumber"],
        )
        return row

    def complete(self, parts: Any = None, **options: Any) -> Any:
        """Complete it."""
        listed = {"Parts": self.parts if parts is None else parts}
        return self.s3.complete_multipart_upload(**self.options, MultipartUpload=listed, **options)


def refused(work: Callable[[], Any]) -> tuple[int, str]:
    """Return status and code of a refusal."""
    with pytest.raises(ClientError) as error:
        work()
    response = error.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


async def begin(brain: Brain, bucket: BucketInfo, key: str = "k") -> str:
    """Begin an upload; return its id."""
    return await uploads.create(
        brain.database, bucket, key, WrittenFields(), algorithm="", checksum_type=""
    )


async def add_part(brain: Brain, bucket: BucketInfo, upload: str, number: int, data: bytes) -> None:
    """Upload a part."""
    receiver = brain.data_directory.receive()
    await receiver.write(data)
    found = await uploads.find(brain.database, bucket, "k", upload)
    staged = await receiver.finish()
    await uploads.write_part(brain.database, brain.upload_parts, found, number, staged, {})


async def parts_of(brain: Brain, upload: str) -> list[StoredPart]:
    """Return where the parts of an upload are."""
    return [part.stored for part in await uploads.parts(brain.database, upload)]
