"""A bucket's CORS rules: get, put and delete them; parsed, stored, and matched against requests.

Source: AWS, "Elements of a CORS configuration" and PutBucketCors; the Fetch standard, §3.2.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.xml import Element, Node, document, parse
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response

RULE_LIMIT: Final = 100
DOCUMENT_LIMIT_BYTES: Final = 64 * 1024
ID_LIMIT_CHARS: Final = 255
METHODS: Final = frozenset(("GET", "PUT", "POST", "DELETE", "HEAD"))
ANY: Final = "*"
_ELEMENTS: Final = frozenset(
    ("ID", "AllowedHeader", "AllowedMethod", "AllowedOrigin", "ExposeHeader", "MaxAgeSeconds")
)
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ORIGIN: Final = re.compile(r"[\x21-\x7e]+")
_SECONDS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CorsRule:
    """One rule. origins, headers: may each contain one ``*``. exposed: headers for scripts.

    max_age_s: how long a browser may keep the answer to a preflight; None if unsaid.
    allows_credentials: as AWS says of every rule that names origins.
    """

    id: str
    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...]
    exposed: tuple[str, ...]
    max_age_s: int | None
    allows_credentials: bool = True

    def allows(self, origin: str, method: str, headers: Iterable[str] = ()) -> bool:
        """True if a page of this origin may send such a request. headers: those of a preflight."""
        return (
            method in self.methods
            and any(_fits(pattern, origin) for pattern in self.origins)
            and all(self._allows_header(name) for name in headers)
        )

    def allowed_origin(self, origin: str) -> str:
        """Return what the response says of a matching origin."""
        return ANY if ANY in self.origins else origin

    def _allows_header(self, name: str) -> bool:
        return any(_fits(pattern.lower(), name.lower()) for pattern in self.headers)


async def get_bucket_cors(context: RequestContext) -> S3Response:
    """Return a bucket's rules. Raises S3Error NoSuchCORSConfiguration where it has none."""
    bucket = await context.bucket()
    found = await context.dependencies.buckets.cors(bucket.id)
    if not found:
        raise S3Error("NoSuchCORSConfiguration", extra={"BucketName": bucket.name})
    return S3Response(body=rules_document(loaded(found)))


async def put_bucket_cors(context: RequestContext) -> S3Response:
    """Replace a bucket's rules; every brain follows the new ones when this returns.

    Raises S3Error: MalformedXML, InvalidRequest, MaxMessageLengthExceeded.
    """
    bucket = await context.writable_bucket()
    wanted = await parse_rules(await read_xml(context))
    await context.dependencies.buckets.set_cors(bucket.id, stored(wanted))
    return S3Response()


async def delete_bucket_cors(context: RequestContext) -> S3Response:
    bucket = await context.writable_bucket()
    await context.dependencies.buckets.set_cors(bucket.id, [])
    return S3Response(204)


def first_match(
    rules: Iterable[CorsRule], origin: str, method: str, headers: Sequence[str] = ()
) -> CorsRule | None:
    """Return the first rule that allows a request, None if no rule does."""
    return next((rule for rule in rules if rule.allows(origin, method, headers)), None)


async def parse_rules(body: bytes) -> tuple[CorsRule, ...]:
    """Parse a CORSConfiguration.

    Raises S3Error: MalformedXML, InvalidRequest, MaxMessageLengthExceeded.
    """
    if len(body) > DOCUMENT_LIMIT_BYTES:
        raise S3Error("MaxMessageLengthExceeded")
    rows = (await parse(body, "CORSConfiguration")).children
    if not 0 < len(rows) <= RULE_LIMIT or any(row.name != "CORSRule" for row in rows):
        raise S3Error("MalformedXML")
    return tuple(_rule(row) for row in rows)


def rules_document(rules: Iterable[CorsRule]) -> bytes:
    return document("CORSConfiguration", [("CORSRule", _nodes(rule)) for rule in rules])


def stored(rules: Iterable[CorsRule]) -> list[dict[str, Any]]:
    """Return rules as JSON, for the bucket's row."""
    return [asdict(rule) for rule in rules]


def loaded(rows: Iterable[Mapping[str, Any]]) -> tuple[CorsRule, ...]:
    """Return the rules of a bucket's row."""
    return tuple(
        CorsRule(
            id=row["id"],
            origins=tuple(row["origins"]),
            methods=tuple(row["methods"]),
            headers=tuple(row["headers"]),
            exposed=tuple(row["exposed"]),
            max_age_s=row["max_age_s"],
        )
        for row in rows
    )


def _rule(row: Element) -> CorsRule:
    found: dict[str, list[str]] = {name: [] for name in _ELEMENTS}
    for child in row.children:
        if child.name not in found or child.children:
            raise S3Error("MalformedXML")
        found[child.name].append(child.text.strip())
    ids, ages = found["ID"], found["MaxAgeSeconds"]
    has_needed = found["AllowedOrigin"] and found["AllowedMethod"]
    if not has_needed or len(ids) > 1 or len(ages) > 1:
        raise S3Error("MalformedXML")
    if any(not _SECONDS.fullmatch(age) for age in ages):
        raise S3Error("MalformedXML")
    if any(len(text) > ID_LIMIT_CHARS for text in ids):
        raise S3Error("InvalidArgument", "The ID of a rule cannot be longer than 255 characters.")
    for method in found["AllowedMethod"]:
        if method not in METHODS:
            raise S3Error(
                "InvalidRequest",
                "Found unsupported HTTP method in CORS config. Unsupported method is "
                f"{method[:100]}",
            )
    for name in ("AllowedOrigin", "AllowedHeader", "ExposeHeader"):
        for text in found[name]:
            _check_pattern(name, text)
    return CorsRule(
        id=ids[0] if ids else "",
        origins=tuple(found["AllowedOrigin"]),
        methods=tuple(found["AllowedMethod"]),
        headers=tuple(found["AllowedHeader"]),
        exposed=tuple(found["ExposeHeader"]),
        max_age_s=int(ages[0]) if ages else None,
    )


def _check_pattern(name: str, text: str) -> None:
    shape = _ORIGIN if name == "AllowedOrigin" else _HEADER
    if not shape.fullmatch(text):
        raise S3Error("InvalidRequest", f'{name} "{text[:100]}" is not valid.')
    if name == "ExposeHeader" and ANY in text:
        raise S3Error(
            "InvalidRequest",
            f'ExposeHeader "{text[:100]}" contains wildcard. We currently do not support wildcard '
            "for ExposeHeader.",
        )
    if text.count(ANY) > 1:
        raise S3Error(
            "InvalidRequest", f'{name} "{text[:100]}" can not have more than one wildcard.'
        )


def _nodes(rule: CorsRule) -> list[Node]:
    nodes: list[Node] = [("ID", rule.id)] if rule.id else []
    nodes += [("AllowedHeader", name) for name in rule.headers]
    nodes += [("AllowedMethod", name) for name in rule.methods]
    nodes += [("AllowedOrigin", name) for name in rule.origins]
    nodes += [("ExposeHeader", name) for name in rule.exposed]
    if rule.max_age_s is not None:
        nodes.append(("MaxAgeSeconds", rule.max_age_s))
    return nodes


def _fits(pattern: str, text: str) -> bool:
    before, star, after = pattern.partition(ANY)
    if not star:
        return text == pattern
    is_long_enough = len(text) >= len(before) + len(after)
    return is_long_enough and text.startswith(before) and text.endswith(after)
