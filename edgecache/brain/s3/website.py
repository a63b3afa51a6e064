"""The website of a bucket: get, put and delete it.

Source: AWS, PutBucketWebsite. The single-page fallback is an option of Zonal's own, which these
documents cannot say: a write ends it.
"""

from typing import Final

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.xml import Element, Node, document, parse
from edgecache.brain.core.errors import Invalid
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.protocol.resources import DOCUMENT_CHARS, INDEX_CHARS

ROOT: Final = "WebsiteConfiguration"
NOT_OFFERED: Final = ("RedirectAllRequestsTo", "RoutingRules")


async def get_bucket_website(context: RequestContext) -> S3Response:
    """Return a bucket's documents. Raises S3Error NoSuchWebsiteConfiguration without any."""
    bucket = await context.bucket()
    if not bucket.website_index:
        raise S3Error("NoSuchWebsiteConfiguration", extra={"BucketName": bucket.name})
    nodes: list[Node] = [("IndexDocument", [("Suffix", bucket.website_index)])]
    if bucket.website_error:
        nodes.append(("ErrorDocument", [("Key", bucket.website_error)]))
    return S3Response(body=document(ROOT, nodes))


async def put_bucket_website(context: RequestContext) -> S3Response:
    """Replace a bucket's documents.

    Raises S3Error: MalformedXML, InvalidArgument, NotImplemented.
    """
    bucket = await context.writable_bucket()
    root = await parse(await read_xml(context), ROOT)
    for name in NOT_OFFERED:
        if root.all(name):
            raise not_implemented(f"PutBucketWebsite with {name}")
    root.check("IndexDocument", "ErrorDocument")
    index = _text(root, "IndexDocument", "Suffix", limit=INDEX_CHARS)
    if not index:
        raise S3Error("InvalidArgument", "A value for IndexDocument Suffix must be provided.")
    error = _text(root, "ErrorDocument", "Key", limit=DOCUMENT_CHARS)
    await _change(context, bucket.id, index, error)
    return S3Response()


async def delete_bucket_website(context: RequestContext) -> S3Response:
    bucket = await context.writable_bucket()
    await _change(context, bucket.id, "", "")
    return S3Response(204)


async def _change(context: RequestContext, bucket_id: int, index: str, error: str) -> None:
    changes = {"website_index": index, "website_error": error, "website_fallback": False}
    try:
        await context.dependencies.buckets.change(context.tenant, bucket_id, changes)
    except Invalid as exc:
        raise S3Error("InvalidArgument", exc.errors[0].message) from exc


def _text(root: Element, name: str, field: str, *, limit: int) -> str:
    """Return a field of an element, '' if the element is absent.

    Raises S3Error: MalformedXML, InvalidArgument.
    """
    elements = root.all(name)
    if not elements:
        return ""
    if len(elements) > 1:
        raise S3Error("MalformedXML", f"{root.name} has two elements {name}.")
    elements[0].check(field, are_texts=True)
    text = elements[0].value(field)
    if not 0 < len(text) <= limit:
        raise S3Error("InvalidArgument", f"The {name} {field} is not well formed.")
    return text
