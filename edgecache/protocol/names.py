"""Names that brain, worker and client must agree on: headers, paths, sizes of batches."""

import re
from typing import Final
from uuid import UUID

TICKET_HEADER: Final = "x-zonal-ticket"
TICKET_PARAMETER: Final = "ticket"
NODE_HEADER: Final = "x-zonal-node"

OBJECT_PREFIX: Final = "/o/"
PROVE_PATH: Final = "/prove"
NONCE_PARAMETER: Final = "nonce"

SHA256_HEX: Final = 64

# A region or an origin: as ``eu-central``.
LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
LABEL_CHARS: Final = 63
# A bucket, as S3 has it; the brain refuses a few of these, such as IP addresses.
BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
BUCKET_RULE: Final = "must be 3 to 63 of a-z, 0-9, dots and hyphens, as S3 has it"
# ``bucket/key`` in a purge, or a URL, encoded and with its query.
PASTED_CHARS: Final = 8192
CAPACITY_LIMIT_BYTES: Final = 2**60

# Maximum entries in one message of a worker; the brain refuses more.
INVENTORY_PAGE: Final = 1000
RECEIPT_BATCH: Final = 500
JOB_BATCH: Final = 100
# On this path of the brain's a worker says which jobs have ended.
JOBS_DONE: Final = "jobs/done"
MESSAGE_LIMIT_BYTES: Final = 1 << 20


def parse_label(value: object) -> str | None:
    """Return a region's or an origin's name unchanged; None for an invalid one."""
    return value if isinstance(value, str) and LABEL.fullmatch(value) else None


def object_path(sha256: bytes) -> str:
    """Return the path of a blob on a worker: ``/o/`` and 64 lower-case hexadecimal digits."""
    return OBJECT_PREFIX + sha256.hex()


def parse_sha256(text: str) -> bytes | None:
    """Return a hash from 64 lower-case hexadecimal digits; None for any other text."""
    if len(text) != SHA256_HEX:
        return None
    try:
        sha256 = bytes.fromhex(text)
    except ValueError:
        return None
    return sha256 if sha256.hex() == text else None


# The folder of a worker's store that has the blobs.
OBJECTS: Final = "objects"


def object_file(sha256: bytes) -> str:
    """Return where a worker's store has a blob, below its ``objects`` folder: ``ab/abcd…``."""
    name = sha256.hex()
    return f"{name[:2]}/{name}"


def parse_object_path(path: str) -> bytes | None:
    """Return the hash that a path names, None when it names none."""
    if not path.startswith(OBJECT_PREFIX):
        return None
    return parse_sha256(path[len(OBJECT_PREFIX) :])


def worker_path(node_id: UUID, name: str) -> str:
    """Return a path of the brain's worker API: ``/v1/workers/{id}/heartbeat`` and the like."""
    return f"/v1/workers/{node_id}/{name}"
