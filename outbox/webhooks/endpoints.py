"""Adding, changing and removing webhook endpoints."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

from common import egress, rate_limits
from common.crypto import encrypt
from common.errors import InvalidRequest
from common.principals import Principal
from environments.models import Organization
from outbox.errors import TooManyWebhooks, WebhookIsOff, WebhookSentTooOften
from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks import delivery_queue, events, signing

WEBHOOKS_PER_ORGANIZATION: Final = 20
# The previous secret also signs for this long after a rotation, unless it is ended immediately.
OVERLAP: Final = timedelta(hours=24)
SENDS_AN_HOUR: Final = 120
HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class EndpointChanges:
    """Changes of an endpoint; None leaves a value unchanged."""

    url: str | None = None
    events: Sequence[str] | None = None
    description: str | None = None
    state: str | None = None


def check_url(url: str) -> str:
    """Return the URL.

    Raises InvalidRequest (400). Its name is resolved at each delivery, not here, because tenants
    must not learn names of the platform's own network.
    """
    wrong = egress.url_fault(url, is_production=settings.IS_PRODUCTION)
    if wrong:
        raise InvalidRequest.for_field("url", wrong)
    return url


def create(
    principal: Principal, url: str, wanted: Sequence[str], *, description: str, now: datetime
) -> WebhookEndpoint:
    """Add an endpoint; return it with its secret's text. Call inside a transaction.

    Raises InvalidRequest (400), TooManyWebhooks (409).
    """
    check_url(url)
    # Serializes creations of an organization, so that the limit holds.
    Organization.objects.select_for_update(no_key=True).only("pk").get(pk=principal.organization_id)
    mine = WebhookEndpoint.objects.filter(organization_id=principal.organization_id)
    if mine.count() >= WEBHOOKS_PER_ORGANIZATION:
        raise TooManyWebhooks("Remove some first.")
    secret = signing.new_secret()
    endpoint: WebhookEndpoint = WebhookEndpoint.objects.create(
        organization_id=principal.organization_id,
        url=url,
        description=description,
        events=_ordered(wanted),
        secret=encrypt(secret),
        created_by=principal.audit_name,
        creator_id=principal.user_id,
        created_at=now,
    )
    endpoint.text = secret
    return endpoint


def change(endpoint: WebhookEndpoint, changes: EndpointChanges, *, now: datetime) -> dict[str, Any]:
    """Change a locked endpoint; return the changes, without the URL's text.

    Raises InvalidRequest (400).
    """
    changed: dict[str, Any] = {}
    if changes.url is not None and changes.url != endpoint.url:
        endpoint.url = check_url(changes.url)
        changed["url"] = True
    if changes.events is not None and _ordered(changes.events) != endpoint.events:
        endpoint.events = changed["events"] = _ordered(changes.events)
    if changes.description is not None and changes.description != endpoint.description:
        endpoint.description = changed["description"] = changes.description
    if changes.state is not None and changes.state != endpoint.state:
        changed["state"] = changes.state
    if "url" in changed or changed.get("state") == WebhookEndpoint.State.ENABLED:
        endpoint.failures, endpoint.resting_until, endpoint.failing_since = 0, None, None
    if changed.get("state") == WebhookEndpoint.State.ENABLED:
        endpoint.state, endpoint.disabled_reason = WebhookEndpoint.State.ENABLED, ""
    endpoint.save()
    if changed.get("state") == WebhookEndpoint.State.DISABLED:
        delivery_queue.disable(endpoint, WebhookEndpoint.Reason.BY_ADMIN, now=now)
    return changed


def rotate(endpoint: WebhookEndpoint, *, now: datetime, keep_previous: bool) -> None:
    """Set a new secret of a locked endpoint, in ``text``; the previous one also signs for a day.

    keep_previous: False if it was leaked; it then ends immediately.
    """
    secret = signing.new_secret()
    endpoint.previous_secret = endpoint.secret if keep_previous else ""
    endpoint.previous_secret_ends_at = now + OVERLAP if keep_previous else None
    endpoint.secret = encrypt(secret)
    endpoint.save(update_fields=["secret", "previous_secret", "previous_secret_ends_at"])
    endpoint.text = secret


def send_test(endpoint: WebhookEndpoint, *, now: datetime) -> WebhookDelivery:
    """Queue a test event for an endpoint. Raises WebhookIsOff (409)."""
    if endpoint.state != WebhookEndpoint.State.ENABLED:
        raise WebhookIsOff
    (delivery,) = events.queue([endpoint], events.TEST, {"webhook_id": str(endpoint.pk)}, now=now)
    return delivery


def check_rate_limit(organization_id: int, *, now: datetime) -> None:
    """Count a requested delivery, outside a transaction that may be rolled back.

    Raises WebhookSentTooOften (429).
    """
    rate_limits.enforce(
        "webhook",
        str(organization_id),
        limit=SENDS_AN_HOUR,
        window=HOUR,
        error=WebhookSentTooOften,
        now=now,
    )


def _ordered(wanted: Sequence[str]) -> list[str]:
    return [event for event in events.EVENTS if event in wanted]
