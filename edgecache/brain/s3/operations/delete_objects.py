"""DeleteObjects: up to a thousand at once."""

from typing import Final

from edgecache.brain.errors import BrainError, KeyRefused
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.errors import S3Error, of_the_brain
from edgecache.brain.s3.xml import Element, Node, document, parse
from edgecache.brain.values import BucketInfo, check_key

LIMIT: Final = 1000


async def run(call: Call) -> Answer:
    """Delete what can be, and say of each key how it went (``Quiet``: of the failures alone)."""
    call.require_write()
    bucket = await call.bucket()
    root = parse(await read_xml(call, needs_digest=True), "Delete")
    rows = root.all("Object")
    if not 0 < len(rows) <= LIMIT:
        raise S3Error("MalformedXML")
    refused: dict[str, S3Error] = {}
    keys: list[str] = []
    for row in rows:
        key = _key(row)
        refusal = _refusal(row, key)
        if refusal is None:
            keys.append(key)
        else:
            refused[key] = refusal
    refused |= await _delete(call, bucket, keys)
    is_quiet = root.value("Quiet").lower() == "true"
    deleted = [] if is_quiet else [key for key in keys if key not in refused]
    nodes: list[Node] = [("Deleted", [("Key", key)]) for key in deleted]
    for key, error in refused.items():
        lines: list[Node] = [("Key", key), ("Code", error.code), ("Message", error.message)]
        nodes.append(("Error", lines))
    return Answer(body=document("DeleteResult", nodes))


def _key(row: Element) -> str:
    for child in row.children:
        if child.name == "Key":
            return child.text
    raise S3Error("MalformedXML")


def _refusal(row: Element, key: str) -> S3Error | None:
    if row.value("VersionId") not in {"", "null"}:
        return S3Error("NoSuchVersion")
    if row.value("ETag") or row.value("LastModifiedTime") or row.value("Size"):
        return S3Error("NotImplemented")
    try:
        check_key(key)
    except KeyRefused:
        return S3Error("KeyTooLongError" if key else "InvalidArgument")
    return None


async def _delete(call: Call, bucket: BucketInfo, keys: list[str]) -> dict[str, S3Error]:
    if not keys:
        return {}
    try:
        await call.parts.fills.delete(bucket, keys)
    except BrainError as error:
        return dict.fromkeys(keys, of_the_brain(error))
    return {}
