"""GetBucketLogging and PutBucketLogging: where a bucket's access log goes.

They are options of the bucket, as in the API. Source: AWS, PutBucketLogging.
"""

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.xml import Element, Node, document, parse
from edgecache.brain.core.errors import Invalid, KeyRefused
from edgecache.brain.core.values import check_key
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.protocol.resources import LOG_PREFIX_CHARS


async def get_bucket_logging(context: RequestContext) -> S3Response:
    """Return where the log goes, or an empty document."""
    bucket = await context.bucket()
    enabled: list[Node] = [
        ("TargetBucket", bucket.log_bucket),
        ("TargetPrefix", bucket.log_prefix),
    ]
    nodes: list[Node] = [("LoggingEnabled", enabled)] if bucket.log_bucket else []
    return S3Response(body=document("BucketLoggingStatus", nodes))


async def put_bucket_logging(context: RequestContext) -> S3Response:
    """Set where the log goes; an empty document ends it.

    Raises S3Error: MalformedXML, InvalidArgument, InvalidTargetBucketForLogging; NotImplemented for
    grants and names by date.
    """
    bucket = await context.writable_bucket()
    root = await parse(await read_xml(context), "BucketLoggingStatus")
    root.check("LoggingEnabled")
    if len(root.children) > 1:
        raise S3Error("MalformedXML")
    target, prefix = _target(root.children[0]) if root.children else ("", "")
    try:
        await context.dependencies.buckets.change(
            context.tenant, bucket.id, {"log_bucket": target, "log_prefix": prefix}
        )
    except Invalid as exc:
        message = f"The target bucket for logging: {exc.errors[0].message}."
        raise S3Error(
            "InvalidTargetBucketForLogging", message, extra={"TargetBucket": target[:63]}
        ) from None
    return S3Response()


def _target(enabled: Element) -> tuple[str, str]:
    """Return the bucket and the prefix.

    Raises S3Error: MalformedXML, InvalidArgument, NotImplemented.
    """
    for name in ("TargetGrants", "TargetObjectKeyFormat"):
        for each in enabled.all(name):
            # This format is how the objects are named.
            if [child.name for child in each.children] != ["SimplePrefix"]:
                raise not_implemented(f"{name} of an access log")
    enabled.check("TargetBucket", "TargetPrefix", "TargetObjectKeyFormat")
    names = [child.name for child in enabled.children]
    if len(set(names)) < len(names) or not enabled.value("TargetBucket"):
        raise S3Error("MalformedXML")
    prefix = "".join(each.text for each in enabled.all("TargetPrefix"))
    try:
        check_key(prefix or "-")
    except KeyRefused:
        raise S3Error("InvalidArgument", "No key can begin with this TargetPrefix.") from None
    if len(prefix) > LOG_PREFIX_CHARS:
        raise S3Error("InvalidArgument", f"TargetPrefix has at most {LOG_PREFIX_CHARS} characters.")
    return enabled.value("TargetBucket"), prefix
