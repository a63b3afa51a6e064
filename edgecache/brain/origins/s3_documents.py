"""The XML of S3 origins. Their documents are untrusted and limited in size."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote_plus

from edgecache.brain.aws import xml
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import OriginFailed
from edgecache.brain.core.loop_steps import in_steps
from edgecache.brain.core.values import KeyPage, ListedObject

DELETIONS: Final = 1000
# What XML 1.0 cannot hold.
UNSPEAKABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\r]")
CODE: Final = re.compile(r"[A-Za-z]{1,64}")


async def listing_of(body: bytes, home: str) -> KeyPage:
    """Return the page that a ListBucketResult says, without the prefix that all its keys have.

    Raises OriginFailed.
    """
    root = await _parsed(body, "ListBucketResult")
    is_encoded = root.value("EncodingType") == "url"

    def read(text: str) -> str:
        return (unquote_plus(text) if is_encoded else text).removeprefix(home)

    def listed(row: xml.Element) -> ListedObject:
        return ListedObject(
            read(row.value("Key")),
            int(row.value("Size", "0")),
            row.value("ETag").strip('"'),
            datetime.fromisoformat(row.value("LastModified")).astimezone(UTC),
        )

    try:
        objects = await in_steps(listed, root.all("Contents"))
    except ValueError as exc:
        raise OriginFailed("The origin's listing is not one.") from exc
    prefixes = tuple(read(row.value("Prefix")) for row in root.all("CommonPrefixes"))
    is_more = root.value("IsTruncated") == "true"
    names = [row.key for row in objects] + list(prefixes)
    return KeyPage(tuple(objects), prefixes, max(names) if is_more and names else None)


def deletion(names: Sequence[str]) -> bytes | None:
    """Return the document that deletes objects; None where one cannot say it."""
    if len(names) > DELETIONS or any(UNSPEAKABLE.search(name) for name in names):
        return None
    rows: list[xml.Node] = [("Object", [("Key", name)]) for name in names]
    return xml.document("Delete", [("Quiet", "true"), *rows])


async def failed_deletions(body: bytes) -> int:
    """Count the objects that were not deleted. Raises OriginFailed."""
    return len((await _parsed(body, "DeleteResult")).all("Error"))


async def error_code(body: bytes) -> str:
    """Return the code of an error document, or ''."""
    try:
        code = (await xml.parse(body, "Error")).value("Code")
    except S3Error:
        return ""
    return code if CODE.fullmatch(code) else ""


async def _parsed(body: bytes, root: str) -> xml.Element:
    try:
        return await xml.parse(body, root)
    except S3Error as exc:
        raise OriginFailed("The origin's answer is not what S3 says.") from exc
