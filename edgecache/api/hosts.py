"""Hosts of buckets, proved by a DNS record: the platform looks, the brain keeps what was seen."""

from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import structlog
from django.conf import settings

from accounts import limits
from accounts.audit import audit
from accounts.errors import TooManyAttempts
from accounts.oauth.domains import dns_lookup
from accounts.oauth.domains.dns_lookup import LookupFailed
from accounts.oauth.errors import DnsUnavailable
from edgecache.api import client, holdings
from edgecache.api.errors import HostNotFound, HostNotProved
from edgecache.api.holdings import Row
from platform_site.lib.crypto import keyed_digest
from platform_site.lib.errors import InvalidRequest
from platform_site.lib.principals import Scope
from platform_site.lib.provider_settings import DOMAIN

LOOKUPS_AN_HOUR: Final = 60
HOUR: Final = timedelta(hours=1)
# Of one name's records, what the brain is told.
TOKENS: Final = 100
# The record's name is longer than the host's, and a name has 253 characters at the most.
HOST_CHARS: Final = 230

log = structlog.get_logger(__name__)


def of(scope: Scope, bucket_name: str) -> list[Row]:
    """List a bucket's hosts by name.

    Raises BucketNotFound.
    """
    path = _path(scope, bucket_name)
    rows: list[Row] = client.call("GET", path, query=holdings.tenant(scope))["hosts"]
    return rows


def prove(scope: Scope, bucket_name: str, host: str, *, now: datetime) -> Row:
    """Look for the record, and make the host the bucket's where it is there; again is harmless.

    Raises BucketNotFound (404), InvalidRequest (400), HostNotProved (its ``record`` is what to
    make), HostTaken, CacheLimitReached (409), TooManyAttempts (429), DnsUnavailable (503).
    """
    path = _path(scope, bucket_name)
    name = _read(host)
    record = record_of(scope, bucket_name, name)
    wait_s = limits.take(
        "cache host lookup", str(scope.organization_id), limit=LOOKUPS_AN_HOUR, window=HOUR, now=now
    )
    if wait_s:
        raise TooManyAttempts(retry_after_s=wait_s)
    try:
        seen = _tokens(name)
    except LookupFailed as exc:
        raise DnsUnavailable from exc
    token = record["value"].removeprefix(_mark())
    if token not in seen:
        detail = f"Make a TXT record {record['name']} with the value {record['value']}."
        raise HostNotProved(detail, extra={"record": record})
    body = {"host": name, "token": token, "seen": seen[:TOKENS]}
    proved: Row = client.call("POST", path, query=holdings.tenant(scope), body=body)
    _tell(proved.pop("lapsed"))
    return proved


def remove(scope: Scope, bucket_name: str, host: str) -> None:
    """Take a host from its bucket, at once on every brain.

    Raises BucketNotFound, HostNotFound.
    """
    path = _path(scope, bucket_name)
    name = _normal(host)
    if not DOMAIN.fullmatch(name):
        raise HostNotFound
    client.call("DELETE", f"{path}/{name}", query=holdings.tenant(scope))


def record_of(scope: Scope, bucket_name: str, host: str) -> dict[str, str]:
    """Give the DNS record that proves a host for one bucket of one environment, and no other."""
    place = (scope.organization_id, scope.environment_pk, bucket_name)
    digest = keyed_digest(settings.CACHE.secret, "host of a bucket", *place, host)
    return {"type": "TXT", "name": _record_name(host), "value": _mark() + digest.hex()}


def look_again() -> None:
    """Look for the records that have not been looked for in a day, and tell the brain.

    A host whose record is gone for three days is lost; name servers that fail lose nothing.
    Raises CacheUnavailable.
    """
    due = client.call("GET", "/v1/everyone/hosts", disabled={"hosts": []})["hosts"]
    found: dict[str, list[str]] = {"there": [], "gone": [], "unanswered": []}
    for row in due:
        found[_state_of(row["host"], row["token"])].append(row["token"])
    if not due:
        return
    _tell(client.call("POST", "/v1/everyone/hosts", body=found)["lapsed"])


def _tell(lapsed: list[Row]) -> None:
    """Note in its owner's audit trail that a bucket has a host no more."""
    for row in lapsed:
        organization_id = row.pop("organization_id")
        audit.add(None, "sync:bucket_host:lapse", organization_id=organization_id, data=row)


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
    return f"/v1/buckets/{holdings.bucket(scope, bucket_name)['id']}/hosts"


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
    # Below the object API's name stand its buckets.
    s3_host = urlsplit(settings.CACHE.s3_url).hostname
    own = {urlsplit(url).hostname for url in (settings.CACHE.brain_url, settings.PUBLIC_URL)}
    return host in {s3_host, *own, *settings.ALLOWED_HOSTS} or host.endswith(f".{s3_host}")
