"""Domains that organizations claim, prove by a DNS record, and lose with it.

A proven domain has effect in one place: a newcomer whose Google account belongs to that Workspace
domain joins the organization (accounts.oauth.organization_matching).
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from accounts import limits
from accounts.audit import audit
from accounts.errors import TooManyAttempts
from accounts.oauth.domains import dns_lookup
from accounts.oauth.domains.dns_lookup import LookupFailed
from accounts.oauth.errors import (
    DnsUnavailable,
    DomainTaken,
    DomainUnproven,
    TooManyDomains,
)
from accounts.oauth.models import Domain
from platform_site.lib.errors import InvalidRequest, NotFound
from platform_site.lib.ids import capability_id
from platform_site.lib.principals import PlatformRequest, Principal
from platform_site.lib.provider_settings import DOMAIN

MOST: Final = 50
LOOKUPS_AN_HOUR: Final = 60
HOUR: Final = timedelta(hours=1)
# A zone that is being moved loses its record for a while; a domain that was sold does for good.
LAPSES_AFTER: Final = timedelta(days=7)

log = structlog.get_logger(__name__)


def of(organization_id: int) -> QuerySet[Domain]:
    """Give an organization's domains."""
    rows: QuerySet[Domain] = Domain.scoped.within_organization(organization_id)
    return rows


def record_of(domain: Domain) -> dict[str, str]:
    """Give the DNS record that proves a domain."""
    service = settings.SERVICE_NAME
    return {
        "type": "TXT",
        "name": f"_{service}-challenge.{domain.domain}",
        "value": f"{service}-domain-verification={domain.token}",
    }


def claim(
    request: PlatformRequest, principal: Principal, domain: str, *, role: str, now: datetime
) -> Domain:
    """Note that an organization says a domain is its own; it has no effect before it is proven.

    role: of those who will join by it.
    Raises InvalidRequest (400), DomainTaken, TooManyDomains (409).
    """
    name = domain.strip().removesuffix(".").lower()
    if not DOMAIN.fullmatch(name):
        message = "A domain such as example.com; names beyond ASCII in their xn-- form."
        raise InvalidRequest.for_field("domain", message)
    claimed = Domain(
        organization_id=principal.organization_id,
        domain=name,
        role=role,
        token=capability_id(),
        created_at=now,
    )
    with transaction.atomic():
        if of(principal.organization_id).count() >= MOST:
            raise TooManyDomains
        try:
            with transaction.atomic():
                claimed.save(force_insert=True)
        except IntegrityError as exc:
            raise DomainTaken("You have claimed it already.") from exc
        audit.record_request(request, "api:domain:create", domain=name, role=role)
    return claimed


def verify(
    request: PlatformRequest, principal: Principal, domain_id: str, *, now: datetime
) -> Domain:
    """Look for the record, and take the domain as proven where it is there.

    Raises NotFound (404), DomainUnproven, DomainTaken (409: another organization has proven it, and
    its record may still be there), TooManyAttempts (429), DnsUnavailable (503).
    """
    domain = find(principal.organization_id, domain_id)
    _count(principal.organization_id, now)
    if not _is_there(domain):
        raise DomainUnproven("DNS can take a while to show a new record.", extra=_about(domain))
    with transaction.atomic():
        rows = of(principal.organization_id).filter(pk=domain.pk)
        domain.verified_at = domain.verified_at or now
        domain.seen_at = now
        try:
            with transaction.atomic():
                if not rows.update(verified_at=domain.verified_at, seen_at=now):
                    raise NotFound
        except IntegrityError as exc:
            raise DomainTaken("Another organization has proven it.") from exc
        audit.record_request(request, "api:domain:verify", domain=domain.domain)
    return domain


def remove(request: PlatformRequest, principal: Principal, domain_id: str) -> None:
    """Give a domain up; who has joined by it stays.

    Raises NotFound (404).
    """
    domain = find(principal.organization_id, domain_id)
    with transaction.atomic():
        domain.delete()
        audit.record_request(request, "api:domain:delete", domain=domain.domain)


def find(organization_id: int, domain_id: str) -> Domain:
    """Give one of an organization's domains.

    Raises NotFound (404), also for another organization's.
    """
    try:
        key = UUID(domain_id)
    except ValueError:
        raise NotFound from None
    found: Domain | None = of(organization_id).filter(pk=key).first()
    if found is None:
        raise NotFound
    return found


def look_again(*, now: datetime) -> None:
    """Look for the records of proven domains; one that is gone for a week has lapsed.

    Whoever buys a domain makes Workspace accounts of it, which must not lead into the organization
    of whoever had it before.
    """
    for domain in Domain.unscoped.exclude(verified_at=None):  # unscoped: housekeeping
        try:
            is_there = _is_there(domain)
        except DnsUnavailable:
            continue
        mine = Domain.unscoped.filter(pk=domain.pk)  # unscoped: as above
        if is_there:
            mine.update(seen_at=now)
        elif domain.seen_at is None or now >= domain.seen_at + LAPSES_AFTER:
            with transaction.atomic():
                mine.update(verified_at=None)
                audit.add(
                    None,
                    "sync:domain:lapse",
                    organization_id=domain.organization_id,
                    data={"domain": domain.domain},
                )


def _is_there(domain: Domain) -> bool:
    record = record_of(domain)
    try:
        return record["value"] in dns_lookup.txt_records(record["name"])
    except LookupFailed as exc:
        log.info("domain_lookup_failed", domain=domain.domain, reason=str(exc.__cause__))
        raise DnsUnavailable from exc


def _about(domain: Domain) -> dict[str, Any]:
    return {"record": record_of(domain)}


def _count(organization_id: int, now: datetime) -> None:
    wait_s = limits.take(
        "domain lookup", str(organization_id), limit=LOOKUPS_AN_HOUR, window=HOUR, now=now
    )
    if wait_s:
        raise TooManyAttempts(retry_after_s=wait_s)
