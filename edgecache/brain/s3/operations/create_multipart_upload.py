"""CreateMultipartUpload."""

from edgecache.brain.s3 import checksums, object_headers, uploads
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.s3.xml import Node, document


async def run(call: Call) -> Answer:
    """Begin an upload.

    Raises S3Error: NoSuchBucket, AccessDenied, InvalidRequest (a checksum type that cannot be).
    """
    call.require_write()
    bucket = await call.bucket()
    request, parts = call.request, call.parts
    fields = object_headers.fields_of(request)
    algorithm = checksums.algorithm(request)
    kind = _kind(request, algorithm)
    await uploads.remove_expired(parts.database, parts.staging)
    upload_id = await uploads.create(
        parts.database, bucket, request.key, fields, algorithm=algorithm, kind=kind
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
            ("x-amz-checksum-type", kind),
        ]
    return Answer(headers=headers, body=document("InitiateMultipartUploadResult", nodes))


def _kind(request: S3Request, algorithm: str) -> str:
    """Give the type of the object's checksum: AWS's defaults, and what it does not combine."""
    kind = request.header("x-amz-checksum-type").upper()
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
