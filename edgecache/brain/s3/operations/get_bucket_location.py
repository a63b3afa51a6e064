"""GetBucketLocation: buckets are everywhere; the answer is AWS's for its first region."""

from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.xml import document


async def run(call: Call) -> Answer:
    """Answer with the empty location, which every client takes for us-east-1."""
    await call.bucket()
    return Answer(body=document("LocationConstraint", []))
