"""HeadBucket: whether it is there."""

from typing import Final

from edgecache.brain.s3.calls import Answer, Call

REGION: Final = "us-east-1"


async def run(call: Call) -> Answer:
    """Answer 200 for a bucket of the caller's environment."""
    await call.bucket()
    return Answer(headers=[("x-amz-bucket-region", REGION)])
