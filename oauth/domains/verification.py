"""Domains: claimed by organizations, verified by a DNS record, lost when the record is removed.

A verified domain has one effect: a new user whose Google account belongs to that Workspace domain
joins the organization (oauth.account_matching).
"""

from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from accounts.errors import TooManyAttempts
from audit import trail
from common import dns_lookup, rate_limits
from common.dns_lookup import LookupFailed
from common.errors import DnsUnavailable, InvalidRequest, NotFound
from common.ids import capability_id
from common.principals import PlatformRequest, Principal
from common.web.hostnames import DOMAIN
from oauth.audit_tags import OAuthTag
from oauth.errors import DomainTaken, DomainUnproven, TooManyDomains
from oauth.models import Domain

MAX_DOMAINS: Final = 50
LOOKUPS_PER_HOUR: Final = 60
HOUR: Final = timedelta(hours=1)
# The record of a zone that moves is missing for a while, that of a sold domain forever.
EXPIRES_AFTER: Final = timedelta(days=7)

log = structlog.get_logger(__name__)


def domains_of(organization_id: int) -> QuerySet[Domain]:
    """Return an organization's domains."""
    rows: QuerySet[Domain] = Domain.objects.filter(organization_id=organization_id)
    return rows


def record_of(domain: Domain) -> dict[str, str]:
    """Return the DNS record that verifies a domain."""
    service = settings.SERVICE_NAME
    return {
        "type": "TXT",
        "name": f"_{service}-challenge.{domain.domain}",
        "value": f"{service}-domain-verification={domain.token}",
    }


def claim(
    request: PlatformRequest, principal: Principal, domain: str, *, role: str, now: datetime
) -> Domain:
    """Claim a domain for an organization; a claim has no effect before it is verified.

    role: of users who will join by it.
    Raises InvalidRequest (400), DomainTaken, TooManyDomains (409).
    """
    name = domain.strip().removesuffix(".").lower()
    if not DOMAIN.fullmatch(name):
        message = "Enter a domain such as example.com, with non-ASCII names in their xn-- form."
        raise InvalidRequest.for_field("domain", message)
    claimed = Domain(
        organization_id=principal.organization_id,
        domain=name,
        role=role,
        token=capability_id(),
        created_at=now,
    )
    with transaction.atomic():
        if domains_of(principal.organization_id).count() >= MAX_DOMAINS:
            raise TooManyDomains
        try:
            with transaction.atomic():
                claimed.save(force_insert=True)
        except IntegrityError as exc:
            raise DomainTaken("You have already claimed it.") from exc
        trail.record_request(request, OAuthTag.DOMAIN_CREATE, domain=name, role=role)
    return claimed


def verify(request: PlatformRequest, domain: Domain, *, now: datetime) -> Domain:
    """Look up the record, and mark the domain as verified if it is found.

    Raises NotFound (404: removed in the meantime), DomainUnproven, DomainTaken (409: another
    organization has verified it, and its record may still exist), TooManyAttempts (429),
    DnsUnavailable (503).
    """
    _check_rate_limit(domain.organization_id, now)
    if not _has_record(domain):
        raise DomainUnproven(
            "DNS changes can take a while to become visible.", extra=_about(domain)
        )
    with transaction.atomic():
        rows = domains_of(domain.organization_id).filter(pk=domain.pk)
        domain.verified_at = domain.verified_at or now
        domain.seen_at = now
        try:
            with transaction.atomic():
                if not rows.update(verified_at=domain.verified_at, seen_at=now):
                    raise NotFound
        except IntegrityError as exc:
            raise DomainTaken("Another organization has verified it.") from exc
        trail.record_request(request, OAuthTag.DOMAIN_VERIFY, domain=domain.domain)
    return domain


def remove(request: PlatformRequest, domain: Domain) -> None:
    """Remove a domain; users who joined by it stay."""
    with transaction.atomic():
        domain.delete()
        trail.record_request(request, OAuthTag.DOMAIN_DELETE, domain=domain.domain)


def recheck_all(*, now: datetime) -> None:
    """Look up the records of verified domains; after a week without it the verification expires.

    The buyer of a domain can create Workspace accounts in it, and these must not join the
    organization of the previous owner.
    """
    for domain in Domain.objects.exclude(verified_at=None):
        try:
            is_found = _has_record(domain)
        except DnsUnavailable:
            continue
        row = Domain.objects.filter(pk=domain.pk)
        if is_found:
            row.update(seen_at=now)
        elif domain.seen_at is None or now >= domain.seen_at + EXPIRES_AFTER:
            with transaction.atomic():
                row.update(verified_at=None)
                trail.add(
                    None,
                    OAuthTag.SYNC_DOMAIN_LAPSE,
                    organization_id=domain.organization_id,
                    data={"domain": domain.domain},
                )


def _has_record(domain: Domain) -> bool:
    record = record_of(domain)
    try:
        return record["value"] in dns_lookup.txt_records(record["name"])
    except LookupFailed as exc:
        log.info("domain_lookup_failed", domain=domain.domain, reason=str(exc.__cause__))
        raise DnsUnavailable from exc


def _about(domain: Domain) -> dict[str, Any]:
    return {"record": record_of(domain)}


def _check_rate_limit(organization_id: int, now: datetime) -> None:
    rate_limits.enforce(
        "domain lookup",
        str(organization_id),
        limit=LOOKUPS_PER_HOUR,
        window=HOUR,
        error=TooManyAttempts,
        now=now,
    )
