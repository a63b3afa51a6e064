"""Host names of buckets: the platform looks up the DNS record that proves one."""

from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import structlog
from django.conf import settings

from accounts.errors import TooManyAttempts
from audit import trail
from common import dns_lookup, rate_limits
from common.crypto import keyed_digest
from common.dns_lookup import LookupFailed
from common.errors import DnsUnavailable, InvalidRequest
from common.principals import Scope
from common.web.hostnames import DOMAIN
from edgecache.api import buckets, client
from edgecache.api.audit_tags import CacheTag
from edgecache.api.client import Row, tenant
from edgecache.api.errors import HostNotFound, HostNotProved

LOOKUPS_AN_HOUR: Final = 60
HOUR: Final = timedelta(hours=1)
# At most this many TXT records of a name are sent to the brain.
TOKENS: Final = 100
# The record's name is longer than the host's, and a name has at most 253 characters.
HOST_CHARS: Final = 230

log = structlog.get_logger(__name__)


def all_of(scope: Scope, bucket_name: str) -> list[Row]:
    """Return a bucket's hosts by name. Raises BucketNotFound."""
    path = _path(scope, bucket_name)
    rows: list[Row] = client.call("GET", path, query=tenant(scope))["hosts"]
    return [row | records_of(scope, bucket_name, row["host"]) for row in rows]


def find(scope: Scope, bucket_name: str, host: str) -> Row:
    """Return a host without a look-up; ``proved_at`` is None if it is not the bucket's.

    Raises BucketNotFound, InvalidRequest.
    """
    rows = all_of(scope, bucket_name)
    name = _read(host)
    unproved = {"host": name, "proved_at": None, "gone_since": None}
    return next(
        (row for row in rows if row["host"] == name),
        unproved | records_of(scope, bucket_name, name),
    )


def prove(scope: Scope, bucket_name: str, host: str, *, now: datetime) -> Row:
    """Assign the host to the bucket if its DNS record exists; safe to repeat.

    Raises BucketNotFound (404), InvalidRequest (400), HostNotProved (its ``record`` is the one
    to create), HostTaken, CacheLimitReached (409), TooManyAttempts (429), DnsUnavailable (503).
    """
    path = _path(scope, bucket_name)
    name = _read(host)
    record = record_of(scope, bucket_name, name)
    rate_limits.enforce(
        "cache host lookup",
        str(scope.organization_id),
        limit=LOOKUPS_AN_HOUR,
        window=HOUR,
        error=TooManyAttempts,
        now=now,
    )
    try:
        seen = _tokens(name)
    except LookupFailed as exc:
        raise DnsUnavailable from exc
    token = record["value"].removeprefix(_mark())
    if token not in seen:
        detail = f"Create a TXT record {record['name']} with the value {record['value']}."
        raise HostNotProved(detail, extra={"record": record})
    body = {"host": name, "token": token, "seen": seen[:TOKENS]}
    proved: Row = client.call("POST", path, query=tenant(scope), body=body)
    _audit_lapsed(proved.pop("lapsed"))
    return proved | records_of(scope, bucket_name, name)


def remove(scope: Scope, bucket_name: str, host: str) -> None:
    """Remove a host from its bucket, immediately on every brain.

    Raises BucketNotFound, HostNotFound.
    """
    path = _path(scope, bucket_name)
    name = _normal(host)
    if not DOMAIN.fullmatch(name):
        raise HostNotFound
    client.call("DELETE", f"{path}/{name}", query=tenant(scope))


def records_of(scope: Scope, bucket_name: str, host: str) -> Row:
    """Return the DNS records of a host: the one that proves it, and the one that clients follow."""
    return {"record": record_of(scope, bucket_name, host), "cname": cname_of(host)}


def cname_of(host: str) -> dict[str, str] | None:
    """Return the record that leads to the object API; None if that has only an address."""
    target = urlsplit(settings.CACHE.s3_url).hostname or ""
    if not DOMAIN.fullmatch(target):
        return None
    return {"type": "CNAME", "name": host, "value": target}


def record_of(scope: Scope, bucket_name: str, host: str) -> dict[str, str]:
    """Return the DNS record that proves a host for this bucket of this environment only."""
    bucket = (scope.organization_id, scope.environment_pk, bucket_name)
    digest = keyed_digest(settings.CACHE.secret, "host of a bucket", *bucket, host)
    return {"type": "TXT", "name": _record_name(host), "value": _mark() + digest.hex()}


def check_due_records() -> None:
    """Look up the records that were not checked for a day, and report to the brain.

    A host whose record is missing for three days is removed; failing name servers do not count.
    Raises CacheUnavailable.
    """
    due = client.call("GET", "/v1/everyone/hosts", disabled={"hosts": []})["hosts"]
    found: dict[str, list[str]] = {"there": [], "gone": [], "unanswered": []}
    for row in due:
        found[_state_of(row["host"], row["token"])].append(row["token"])
    if not due:
        return
    _audit_lapsed(client.call("POST", "/v1/everyone/hosts", body=found)["lapsed"])


def _audit_lapsed(lapsed: list[Row]) -> None:
    """Record in the owner's audit trail that a bucket lost a host."""
    for row in lapsed:
        organization_id = row.pop("organization_id")
        trail.add(None, CacheTag.SYNC_BUCKET_HOST_LAPSE, organization_id=organization_id, data=row)


def _state_of(host: str, token: str) -> str:
    try:
        return "there" if token in _tokens(host) else "gone"
    except LookupFailed:
        return "unanswered"


def _tokens(host: str) -> list[str]:
    mark = _mark()
    try:
        texts = dns_lookup.txt_records(_record_name(host))
    except LookupFailed as exc:
        log.info("cache_host_lookup_failed", host=host, reason=str(exc.__cause__))
        raise
    return [text.removeprefix(mark) for text in texts if text.startswith(mark)]


def _mark() -> str:
    return f"{settings.SERVICE_NAME}-cache-verification="


def _record_name(host: str) -> str:
    return f"_{settings.SERVICE_NAME}-cache.{host}"


def _path(scope: Scope, bucket_name: str) -> str:
    return f"/v1/buckets/{buckets.find(scope, bucket_name)['id']}/hosts"


def _normal(host: str) -> str:
    return host.strip().removesuffix(".").lower()


def _read(host: str) -> str:
    name = _normal(host)
    if len(name) > HOST_CHARS or not DOMAIN.fullmatch(name):
        message = "A host such as files.example.com, without a port; xn-- names beyond ASCII."
        raise InvalidRequest.for_field("host", message)
    if _is_own(name):
        raise InvalidRequest.for_field("host", "This host is the platform's own.")
    return name


def _is_own(host: str) -> bool:
    # Names below the object API's are buckets in virtual-host style.
    s3_host = urlsplit(settings.CACHE.s3_url).hostname
    own = {urlsplit(url).hostname for url in (settings.CACHE.brain_url, settings.PUBLIC_URL)}
    return host in {s3_host, *own, *settings.ALLOWED_HOSTS} or host.endswith(f".{s3_host}")
