"""DeleteObject: gone from its origin and from every brain when this answers."""

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.conditions import of_write
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.reading import check_version


async def run(call: Call) -> Answer:
    """Delete the object; one that is not there is no error."""
    call.require_write()
    bucket = await call.bucket()
    key = check_version(call)
    if of_write(call.request).if_match is not None:
        # AWS offers it for directory buckets alone; ignoring it would delete what was changed.
        raise S3Error("NotImplemented")
    await call.parts.fills.delete(bucket, [key])
    return Answer(204)
