"""The source of a copy: named in a header, read with the caller's own key."""

from dataclasses import dataclass

from edgecache.brain.s3 import conditions, requests
from edgecache.brain.s3.calls import Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.reading import head
from edgecache.brain.values import BucketInfo, Found

HEADER = "x-amz-copy-source"


@dataclass(frozen=True, slots=True)
class Source:
    """An object to be copied, as it was when the copy was asked for."""

    bucket: BucketInfo
    key: str
    found: Found

    def is_named(self, bucket: str, key: str) -> bool:
        """Say whether it has this name within the caller's environment."""
        return (self.bucket.name, self.key) == (bucket, key)


async def source_of(call: Call) -> Source:
    """Find the source, and apply the conditions on it.

    Raises S3Error: InvalidArgument, NoSuchBucket, NoSuchKey, PreconditionFailed.
    """
    text = call.request.header(HEADER)
    path, _, query = text.partition("?")
    bucket_name, _, key = requests.decoded(path).removeprefix("/").partition("/")
    if query not in {"", "versionId=null"} or not bucket_name or not key:
        raise S3Error(
            "InvalidArgument",
            "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
            extra={"ArgumentName": HEADER, "ArgumentValue": text[:200]},
        )
    requests.check_key_length(key)
    bucket = await call.bucket(bucket_name)
    found = await head(call, bucket, key)
    conditions.check_copy(call.request, found.etag, found.last_modified)
    return Source(bucket, key, found)
