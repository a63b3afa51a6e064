"""S3 clients with access keys made through the platform."""

from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.cast import Caller


def s3(caller: Caller, access: str = "write") -> Any:
    """Return an S3 client with a new access key of the caller's environment."""
    made = caller.post("/v1/cache/access-keys", {"label": "test", "access": access})
    assert made.status == 201, made.body
    return boto3.client(
        "s3",
        endpoint_url=made.body["endpoint"],
        aws_access_key_id=made.body["access_key_id"],
        aws_secret_access_key=made.body["secret_access_key"],
        region_name="us-east-1",
        config=Config(signature_version="s3v4", retries={"total_max_attempts": 1}),
    )


def refused(action: Any) -> str:
    """Return the S3 error code of a refused call."""
    with pytest.raises(ClientError) as caught:
        action()
    return str(caught.value.response["Error"]["Code"])
