"""A bucket's lifecycle rules: get, put and delete them, and what they say of an object.

The brain's upkeep applies them (``upkeep.lifecycle``). Source: AWS, "Lifecycle configuration
elements" and PutBucketLifecycleConfiguration.
"""

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import quote

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.xml import Element, Node, long_document, parse
from edgecache.brain.core.loop_steps import in_steps
from edgecache.brain.core.values import TAGGING_HEADER, BucketInfo, ObjectVersion
from edgecache.brain.s3 import tags
from edgecache.brain.s3.bodies import read_xml
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.upkeep.lifecycle_rules import (
    Form,
    LifecycleRule,
    expiry_by,
    loaded,
    midnight,
    stored,
)
from edgecache.http.response_head import http_date

RULE_LIMIT: Final = 1000
DOCUMENT_LIMIT_BYTES: Final = 512 * 1024
ID_LIMIT_CHARS: Final = 255
PREFIX_LIMIT_BYTES: Final = 1024
# A rule takes some microseconds to read and to write.
STEP: Final = 20
# What AWS says of rules that move objects; none does here.
MINIMUM_SIZE: Final = (
    "x-amz-transition-default-minimum-object-size",
    "all_storage_classes_128K",
)
_ACTIONS: Final = ("Expiration", "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration")
_ABSENT: Final = ("Transition", "NoncurrentVersionTransition")
NEWER_LIMIT: Final = 100
_PREDICATES: Final = ("Prefix", "Tag", "ObjectSizeGreaterThan", "ObjectSizeLessThan")
_SIZE: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_DAYS: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_DATE: Final = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
DAYS_LIMIT: Final = 2**31 - 1


async def get_bucket_lifecycle_configuration(context: RequestContext) -> S3Response:
    """Return a bucket's rules. Raises S3Error NoSuchLifecycleConfiguration where it has none."""
    bucket = await context.bucket()
    rows = await context.dependencies.buckets.lifecycle(bucket.id)
    if not rows:
        raise S3Error("NoSuchLifecycleConfiguration", extra={"BucketName": bucket.name})
    nodes = await in_steps(lambda row: ("Rule", _nodes(loaded(row))), rows, step=STEP)
    body = await long_document("LifecycleConfiguration", [], nodes)
    return S3Response(headers=[MINIMUM_SIZE], body=body)


async def put_bucket_lifecycle_configuration(context: RequestContext) -> S3Response:
    """Replace a bucket's rules, which the next round of upkeep follows.

    Raises S3Error: MalformedXML, InvalidRequest, InvalidArgument, MaxMessageLengthExceeded;
    NotImplemented for a bucket with its own origin, and for what rules cannot do here.
    """
    bucket = await context.writable_bucket()
    if bucket.origin_id is not None:
        raise not_implemented("The lifecycle of objects in a bucket with an origin of its own")
    rules = await parse_rules(await read_xml(context))
    await context.dependencies.buckets.set_lifecycle(bucket.id, stored(rules))
    return S3Response(headers=[MINIMUM_SIZE])


async def delete_bucket_lifecycle(context: RequestContext) -> S3Response:
    bucket = await context.writable_bucket()
    await context.dependencies.buckets.set_lifecycle(bucket.id, [])
    return S3Response(204)


async def expiry_headers(
    context: RequestContext, bucket: BucketInfo, version: ObjectVersion
) -> Sequence[tuple[str, str]]:
    """Return the header that says when an object expires, if a rule of the bucket says so.

    What a request names by its version is left out: it may be an older one, which these rules keep.
    Raises DatabaseUnavailable.
    """
    if not bucket.lifecycle or context.request.has("versionId"):
        return ()
    found = expiry_by(
        await context.dependencies.expiry_rules.of_bucket(bucket),
        version.key,
        size=version.size,
        tags=tags.decoded(version.headers.get(TAGGING_HEADER, "")),
        last_modified=version.last_modified,
    )
    if found is None:
        return ()
    moment, rule_id = found
    date = http_date(int(moment.timestamp()))
    return [("x-amz-expiration", f'expiry-date="{date}", rule-id="{quote(rule_id, safe="")}"')]


async def parse_rules(body: bytes) -> Sequence[LifecycleRule]:
    """Parse a LifecycleConfiguration.

    Raises S3Error: MalformedXML, InvalidRequest, InvalidArgument, NotImplemented,
    MaxMessageLengthExceeded.
    """
    if len(body) > DOCUMENT_LIMIT_BYTES:
        raise S3Error("MaxMessageLengthExceeded")
    root = await parse(body, "LifecycleConfiguration")
    root.check("Rule")
    if not root.children:
        raise S3Error("MalformedXML")
    if len(root.children) > RULE_LIMIT:
        raise S3Error(
            "InvalidRequest", "The number of lifecycle rules must not exceed the limit of 1000."
        )
    rules = await in_steps(_rule, root.children, step=STEP)
    if len({rule.id for rule in rules}) < len(rules):
        raise S3Error("InvalidArgument", "Rule ID must be unique.")
    return rules


def _rule(row: Element) -> LifecycleRule:
    for name in _ABSENT:
        if row.all(name):
            raise not_implemented(f"{name} of a lifecycle rule")
    row.check("ID", "Status", "Prefix", "Filter", *_ACTIONS)
    _once(row)
    rule_id, status = row.value("ID"), row.value("Status")
    if len(rule_id) > ID_LIMIT_CHARS:
        raise S3Error("InvalidArgument", "ID length should not exceed allowed limit of 255")
    if status not in {"Enabled", "Disabled"}:
        raise S3Error("MalformedXML")
    form, conditions = _conditions(row)
    found = _predicates(conditions)
    days, date, removes_markers = _expiration(row)
    if removes_markers is not None and (found.tags or found.has_sizes):
        raise S3Error(
            "InvalidRequest", "ExpiredObjectDeleteMarker cannot be specified with Tags or sizes."
        )
    noncurrent_days, newer_noncurrent = _noncurrent(row)
    aborts = row.all("AbortIncompleteMultipartUpload")
    if not any(row.all(name) for name in _ACTIONS):
        raise S3Error("InvalidRequest", "At least one action needs to be specified in a rule.")
    if aborts:
        aborts[0].check("DaysAfterInitiation", are_texts=True)
        _check_abort(found)
    return LifecycleRule(
        id=rule_id or secrets.token_hex(24),
        is_enabled=status == "Enabled",
        form=form,
        days=days,
        date=date,
        abort_days=_days(aborts[0], "DaysAfterInitiation") if aborts else None,
        removes_markers=removes_markers,
        noncurrent_days=noncurrent_days,
        newer_noncurrent=newer_noncurrent,
        **found._asdict(),
    )


def _once(element: Element, *but: str) -> None:
    """Refuse a child that is there twice. Raises S3Error MalformedXML."""
    names = [child.name for child in element.children if child.name not in but]
    if len(set(names)) < len(names):
        raise S3Error("MalformedXML")


def _conditions(row: Element) -> tuple[Form, Sequence[Element]]:
    """Return how a rule says what it is for, and its conditions. Raises S3Error MalformedXML."""
    filters, prefixes = row.all("Filter"), row.all("Prefix")
    if len(filters) + len(prefixes) != 1:
        raise S3Error("MalformedXML")
    if prefixes:
        return "prefix", prefixes
    inner = filters[0]
    inner.check("And", *_PREDICATES)
    if len(inner.children) > 1:
        raise S3Error("MalformedXML")
    both = inner.all("And")
    if not both:
        return "filter", inner.children
    both[0].check(*_PREDICATES)
    _once(both[0], "Tag")
    if not both[0].children:
        raise S3Error("MalformedXML")
    return "and", both[0].children


class _Predicates(NamedTuple):
    """What a rule is for. prefix: None where none was written."""

    prefix: str | None
    tags: dict[str, str]
    greater_bytes: int | None
    less_bytes: int | None

    @property
    def has_sizes(self) -> bool:
        return self.greater_bytes is not None or self.less_bytes is not None


def _predicates(conditions: Sequence[Element]) -> _Predicates:
    """Read conditions. Raises S3Error: MalformedXML, InvalidRequest, InvalidTag, BadRequest."""
    prefix: str | None = None
    pairs: list[tuple[str, str]] = []
    sizes: dict[str, int] = {}
    for each in conditions:
        if each.name == "Tag":
            each.check("Key", "Value", are_texts=True)
            texts = {child.name: child.text for child in each.children}
            if len(texts) < 2:
                raise S3Error("MalformedXML")
            pairs.append((texts["Key"], texts["Value"]))
        elif each.children:
            raise S3Error("MalformedXML")
        elif each.name == "Prefix":
            prefix = each.text
        else:
            sizes[each.name] = _number(each.text, _SIZE)
    if prefix is not None and (len(prefix.encode()) > PREFIX_LIMIT_BYTES or "\0" in prefix):
        raise S3Error("InvalidRequest", "The maximum size of a prefix is 1024.")
    if len(dict(pairs)) < len(pairs):
        raise S3Error("InvalidRequest", "Duplicate Tag Keys are not allowed.")
    greater, less = sizes.get("ObjectSizeGreaterThan"), sizes.get("ObjectSizeLessThan")
    if (greater is not None and greater < 0) or (less is not None and less < 1):
        raise S3Error(
            "InvalidRequest", "ObjectSizeGreaterThan and ObjectSizeLessThan are too small."
        )
    if greater is not None and less is not None and less <= greater:
        raise S3Error(
            "InvalidRequest",
            "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.",
        )
    return _Predicates(prefix, tags.checked(pairs, limit=tags.OF_OBJECT_LIMIT), greater, less)


def _expiration(row: Element) -> tuple[int | None, str | None, bool | None]:
    """Return the days, the date and what is said of markers. Raises S3Error."""
    found = row.all("Expiration")
    if not found:
        return None, None, None
    found[0].check("Days", "Date", "ExpiredObjectDeleteMarker", are_texts=True)
    if len(found[0].children) != 1:
        raise S3Error("MalformedXML")
    if found[0].all("Days"):
        return _days(found[0], "Days"), None, None
    if found[0].all("Date"):
        return None, _date(found[0].value("Date")), None
    said = found[0].value("ExpiredObjectDeleteMarker")
    if said not in {"true", "false"}:
        raise S3Error("MalformedXML")
    return None, None, said == "true"


def _noncurrent(row: Element) -> tuple[int | None, int | None]:
    """Return the days of versions that are not current, and how many stay. Raises S3Error."""
    found = row.all("NoncurrentVersionExpiration")
    if not found:
        return None, None
    found[0].check("NoncurrentDays", "NewerNoncurrentVersions", are_texts=True)
    days = _days(found[0], "NoncurrentDays")
    if not found[0].all("NewerNoncurrentVersions"):
        return days, None
    newer = _number(found[0].value("NewerNoncurrentVersions"), _DAYS)
    if not 0 < newer <= NEWER_LIMIT:
        raise S3Error("InvalidArgument", "'NewerNoncurrentVersions' must be from 1 to 100")
    return days, newer


def _check_abort(found: _Predicates) -> None:
    """Refuse an abort of what only a complete object has. Raises S3Error InvalidRequest."""
    if found.tags:
        raise S3Error(
            "InvalidRequest", "AbortIncompleteMultipartUpload cannot be specified with Tags."
        )
    if found.has_sizes:
        raise S3Error(
            "InvalidRequest", "AbortIncompleteMultipartUpload cannot be specified with Object Size."
        )


def _days(action: Element, name: str) -> int:
    """Return a number of days. Raises S3Error: MalformedXML, InvalidArgument."""
    if not action.all(name):
        raise S3Error("MalformedXML")
    days = _number(action.value(name), _DAYS)
    if not 0 < days <= DAYS_LIMIT:
        raise S3Error(
            "InvalidArgument", f"'{name}' for {action.name} action must be a positive integer"
        )
    return days


def _date(text: str) -> str:
    """Return the day of a midnight. Raises S3Error: MalformedXML, InvalidArgument."""
    if not _DATE.fullmatch(text):
        raise S3Error("MalformedXML")
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise S3Error("MalformedXML") from None
    if moment != midnight(moment.date()):
        raise S3Error("InvalidArgument", "'Date' must be at midnight GMT")
    return moment.date().isoformat()


def _number(text: str, shape: re.Pattern[str]) -> int:
    text = text.strip()
    if not shape.fullmatch(text):
        raise S3Error("MalformedXML")
    return int(text)


def _nodes(rule: LifecycleRule) -> list[Node | None]:
    """Return a rule as it was written."""
    parts: list[Node] = []
    if rule.prefix is not None:
        parts.append(("Prefix", rule.prefix))
    parts += [("Tag", [("Key", key), ("Value", value)]) for key, value in rule.tags.items()]
    if rule.greater_bytes is not None:
        parts.append(("ObjectSizeGreaterThan", rule.greater_bytes))
    if rule.less_bytes is not None:
        parts.append(("ObjectSizeLessThan", rule.less_bytes))
    written: dict[Form, Node] = {
        "prefix": ("Prefix", rule.prefix or ""),
        "filter": ("Filter", parts),
        "and": ("Filter", [("And", parts)]),
    }
    nodes: list[Node | None] = [
        ("ID", rule.id),
        written[rule.form],
        ("Status", "Enabled" if rule.is_enabled else "Disabled"),
    ]
    if rule.days is not None:
        nodes.append(("Expiration", [("Days", rule.days)]))
    if rule.date is not None:
        nodes.append(("Expiration", [("Date", f"{rule.date}T00:00:00.000Z")]))
    if rule.removes_markers is not None:
        nodes.append(("Expiration", [("ExpiredObjectDeleteMarker", rule.removes_markers)]))
    if rule.noncurrent_days is not None:
        kept: list[Node] = [("NoncurrentDays", rule.noncurrent_days)]
        if rule.newer_noncurrent is not None:
            kept.append(("NewerNoncurrentVersions", rule.newer_noncurrent))
        nodes.append(("NoncurrentVersionExpiration", kept))
    if rule.abort_days is not None:
        days: Node = ("DaysAfterInitiation", rule.abort_days)
        nodes.append(("AbortIncompleteMultipartUpload", [days]))
    return nodes
