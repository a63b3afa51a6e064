"""Tags: parsed, checked against AWS's limits, and written as headers and XML.

Source: AWS, "Categorizing your objects using tags", "Cost allocation tags" and PutObjectTagging.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.xml import Element, Node, document, parse
from edgecache.brain.core.values import TAGGING_HEADER, BucketInfo
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext

OF_OBJECT_LIMIT: Final = 10
OF_BUCKET_LIMIT: Final = 50
KEY_LIMIT_CHARS: Final = 128
VALUE_LIMIT_CHARS: Final = 256
# More than are allowed; beyond this number single tags are not checked.
HEADER_PAIRS: Final = 50
RESERVED: Final = "aws:"
# Letters, digits and blanks of all languages, and these.
_ALLOWED: Final = re.compile(r"[\w\s.:/=+\-@]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def of_upload(request: S3Request, bucket: BucketInfo) -> str:
    """Return the tags in an upload's headers, encoded; '' without tags.

    Raises S3Error: InvalidArgument, InvalidTag, BadRequest; NotImplemented for a bucket with its
    own origin.
    """
    text = request.header(TAGGING_HEADER)
    if not text:
        return ""
    refuse_external(bucket)
    if text.count("&") >= HEADER_PAIRS:
        raise _too_many(OF_OBJECT_LIMIT)
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
    except ValueError:
        raise _not_encoded() from None
    if len(dict(pairs)) < len(pairs):
        raise _not_encoded()
    return encoded(checked(pairs, limit=OF_OBJECT_LIMIT))


def checked(pairs: Iterable[tuple[str, str]], *, limit: int) -> dict[str, str]:
    """Return tags that are within AWS's limits.

    Raises S3Error: InvalidTag, BadRequest (too many).
    """
    tags: dict[str, str] = {}
    for key, value in pairs:
        _check_text(key, "TagKey", limit=KEY_LIMIT_CHARS)
        _check_text(value, "TagValue", limit=VALUE_LIMIT_CHARS)
        if not key or key.lower().startswith(RESERVED):
            raise S3Error(
                "InvalidTag",
                "System tags cannot be added/updated by requester" if key else _invalid("TagKey"),
                extra={"TagKey": key},
            )
        if key in tags:
            raise S3Error(
                "InvalidTag",
                "Cannot provide multiple Tags with the same key",
                extra={"TagKey": key},
            )
        tags[key] = value
    if len(tags) > limit:
        raise _too_many(limit)
    return tags


async def read_tags(context: RequestContext, *, limit: int) -> dict[str, str]:
    """Return the tags in a request's body.

    Raises S3Error: MalformedXML, InvalidTag, BadRequest, and what ``read_xml`` raises.
    """
    return await parsed(await read_xml(context), limit=limit)


async def parsed(body: bytes, *, limit: int) -> dict[str, str]:
    """Return the tags of a Tagging document.

    Raises S3Error: MalformedXML, InvalidTag, BadRequest.
    """
    root = await parse(body, "Tagging")
    if [child.name for child in root.children] != ["TagSet"]:
        raise S3Error("MalformedXML")
    return tags_of(root.children[0], limit=limit)


def tags_of(tag_set: Element, *, limit: int) -> dict[str, str]:
    """Return the tags of an element. Raises S3Error: MalformedXML, InvalidTag, BadRequest."""
    pairs = []
    for tag in tag_set.children:
        names = sorted(child.name for child in tag.children)
        is_flat = not any(child.children for child in tag.children)
        if tag.name != "Tag" or names != ["Key", "Value"] or not is_flat:
            raise S3Error("MalformedXML")
        texts = {child.name: child.text for child in tag.children}
        pairs.append((texts["Key"], texts["Value"]))
    return checked(pairs, limit=limit)


def encoded(tags: Mapping[str, str]) -> str:
    """Return tags in the form of headers, which is also the stored form."""
    return urlencode(tags, quote_via=quote, safe="")


def decoded(text: str) -> dict[str, str]:
    return dict(parse_qsl(text, keep_blank_values=True)) if text else {}


def tagging_document(tags: Mapping[str, str]) -> bytes:
    pairs = sorted(tags.items())
    rows: list[Node] = [("Tag", [("Key", key), ("Value", value)]) for key, value in pairs]
    return document("Tagging", [("TagSet", rows)])


def refuse_external(bucket: BucketInfo) -> None:
    """Refuse to tag what another store keeps: its own tags are not known here.

    Raises S3Error NotImplemented.
    """
    if bucket.origin_id is not None:
        raise S3Error(
            "NotImplemented", "Objects of a bucket with an origin of its own cannot be tagged here."
        )


def _check_text(text: str, name: str, *, limit: int) -> None:
    if len(text) > limit or not _ALLOWED.fullmatch(text) or _CONTROL.search(text):
        raise S3Error("InvalidTag", _invalid(name), extra={name: text[:limit]})


def _invalid(name: str) -> str:
    return f"The {name} you have provided is invalid"


def _too_many(limit: int) -> S3Error:
    whose = "Object tags" if limit == OF_OBJECT_LIMIT else "Bucket tag count"
    return S3Error("BadRequest", f"{whose} cannot be greater than {limit}")


def _not_encoded() -> S3Error:
    return S3Error(
        "InvalidArgument",
        "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query "
        "parameters without tag name duplicates.",
        extra={"ArgumentName": TAGGING_HEADER},
    )
