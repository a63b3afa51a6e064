"""The OpenAPI description of the operations of objects."""

from functools import partial
from typing import Final

from common.openapi.operations import Operations
from edgecache.api.errors import (
    BucketNotFound,
    ObjectNotFound,
    OriginFailed,
    OriginReadOnly,
)
from edgecache.api.openapi import operation

PATH: Final = "/v1/cache/buckets/{bucket_name}/objects"
LISTED: Final = {
    "key": "reports/2026.pdf",
    "size": 48211,
    "etag": "9a0364b9e99bb480dd25e1f0284c8555",
    "last_modified": "2026-11-22T18:37:30.668976Z",
}
URL: Final = (
    "http://127.0.0.1:9000/media/reports/2026.pdf?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=zp-…&X-Amz-Date=20261122T183730Z&X-Amz-Expires=300"
    "&X-Amz-SignedHeaders=host&X-Amz-Signature=…"
)
EXPIRES_AT: Final = "2026-11-22T18:42:30.668976Z"

_operation: Final = partial(operation, "Objects", BucketNotFound)

OPERATIONS: Final[Operations] = {
    f"GET {PATH}": _operation(
        OriginReadOnly,
        OriginFailed,
        response={"objects": [LISTED], "prefixes": ["reports/drafts/"], "next_after": None},
    ),
    f"GET {PATH}/details": _operation(
        ObjectNotFound,
        OriginFailed,
        response=LISTED
        | {
            "content_type": "application/pdf",
            "headers": {"cache-control": "max-age=300"},
            "metadata": {"author": "alice"},
        },
    ),
    f"POST {PATH}/delete": _operation(
        OriginReadOnly, OriginFailed, request={"keys": ["reports/2025.pdf"]}
    ),
    f"POST {PATH}/download-url": _operation(
        request={"key": "reports/2026.pdf", "expires_in_s": 300},
        response={"url": URL, "expires_at": EXPIRES_AT},
    ),
    f"POST {PATH}/upload-urls": _operation(
        request={"key": "reports/2026.pdf", "step": "put", "content_type": "application/pdf"},
        response={"method": "PUT", "urls": [URL], "expires_at": EXPIRES_AT},
    ),
}
