"""Webhooks for tests."""

import json
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from common.crypto import decrypt, encrypt
from outbox.models import WebhookDelivery, WebhookEndpoint
from tests.cast import Answer, signed_in

PATH = "/v1/webhooks"
SECRET = f"whsec_{'A' * 43}="


def asked(user: User, url: str, *events: str, **more: Any) -> Answer:
    """Ask for a webhook; return the answer."""
    body = {"url": url, "events": list(events or ("member.added",))} | more
    return signed_in(user).post(PATH, body)


def added(user: User, url: str, *events: str, **more: Any) -> dict[str, Any]:
    """Return the answer's body of a new webhook."""
    answer = asked(user, url, *events, **more)
    assert answer.status == 201, answer.body
    body: dict[str, Any] = answer.body
    return body


def send_test(user: User, webhook: dict[str, Any]) -> str:
    """Have a test event queued; return the delivery's id."""
    answer = signed_in(user).call("POST", f"{PATH}/{webhook['id']}/test")
    assert answer.status == 202, answer.body
    return str(answer.body["id"])


def delivery(user: User, webhook: dict[str, Any], delivery_id: str) -> dict[str, Any]:
    """Return a delivery as the API shows it."""
    path = f"{PATH}/{webhook['id']}/deliveries/{delivery_id}"
    body: dict[str, Any] = signed_in(user).get(path).body
    return body


def make_due() -> None:
    """Let all waits be over."""
    past = timezone.now() - timedelta(seconds=1)
    WebhookDelivery.objects.filter(state="queued").update(next_attempt_at=past)
    WebhookEndpoint.objects.update(resting_until=None)


def subscribe(organization_id: int, *wanted: str) -> WebhookEndpoint:
    """Add a webhook of an organization that need not have a user."""
    endpoint: WebhookEndpoint = WebhookEndpoint.objects.create(
        organization_id=organization_id,
        url="https://hooks.example.com/",
        events=list(wanted),
        secret=encrypt(SECRET),
        created_by="a test",
        created_at=timezone.now(),
    )
    return endpoint


def emitted() -> list[tuple[str, Any]]:
    """Return the events that are queued, with their data, in order."""
    bodies = WebhookDelivery.objects.order_by("id").values_list("body", flat=True)
    messages = [json.loads(decrypt(body)) for body in bodies]
    return [(message["type"], message["data"]) for message in messages]
