"""CreateMultipartUpload: an upload id, under which parts are uploaded."""

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.xml import Node, document
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.multipart import uploads
from edgecache.brain.s3.objects import headers as object_headers


async def create_multipart_upload(context: RequestContext) -> S3Response:
    """Create an upload.

    Raises S3Error: NoSuchBucket, AccessDenied, InvalidRequest (an impossible checksum type).
    """
    bucket = await context.writable_bucket()
    request, parts = context.request, context.dependencies
    fields = object_headers.upload_fields(request, bucket)
    algorithm = checksums.requested_algorithm(request)
    checksum_type = _checksum_type(request, algorithm)
    upload_id = await uploads.create(
        parts.database,
        bucket,
        request.key,
        fields,
        algorithm=algorithm,
        checksum_type=checksum_type,
    )
    nodes: list[Node] = [
        ("Bucket", request.bucket),
        ("Key", request.key),
        ("UploadId", upload_id),
    ]
    headers = []
    if algorithm:
        headers = [
            ("x-amz-checksum-algorithm", algorithm.upper()),
            ("x-amz-checksum-type", checksum_type),
        ]
    return S3Response(headers=headers, body=document("InitiateMultipartUploadResult", nodes))


def _checksum_type(request: S3Request, algorithm: str) -> str:
    """Return the type of the object's checksum, by AWS's defaults and restrictions."""
    kind = request.header(checksums.TYPE_HEADER).upper()
    if kind not in {"", checksums.FULL, checksums.COMPOSITE}:
        raise S3Error("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
    if not algorithm:
        if kind:
            raise S3Error(
                "InvalidRequest",
                "The x-amz-checksum-type header can only be used with the "
                "x-amz-checksum-algorithm header.",
            )
        return ""
    can_be_full = algorithm in checksums.COMBINES
    can_be_composite = algorithm != "crc64nvme"
    kind = kind or (checksums.COMPOSITE if can_be_composite else checksums.FULL)
    if not (can_be_full if kind == checksums.FULL else can_be_composite):
        raise S3Error(
            "InvalidRequest",
            f"The {kind} checksum type cannot be used with the {algorithm} checksum algorithm.",
        )
    return kind
