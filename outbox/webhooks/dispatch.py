"""The dispatcher: sends due deliveries, many concurrently, in one job of the task worker.

Slow webhook servers therefore do not delay the worker's other jobs, such as mail.
"""

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import Final

import structlog
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from common import egress
from common.crypto import decrypt
from common.egress import WebhookAnswer
from outbox.models import WebhookDelivery
from outbox.webhooks import delivery_queue, events, signing

log = structlog.get_logger(__name__)

# Concurrent requests in one process; delivery_queue.SHARE is the limit of an organization.
MAX_REQUESTS: Final = 32
# After this time another job continues, so that a worker can be restarted.
RUN_S: Final = 30.0
POLL_S: Final = 0.5


class _SingleDispatcher:
    """Allows one dispatcher per process; a second one has the first check again."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._is_taken = self._is_asked = False

    def start(self) -> bool:
        """True if the caller may run."""
        with self._guard:
            self._is_asked = self._is_taken
            free, self._is_taken = not self._is_taken, True
            return free

    def finish(self) -> bool:
        """True if the caller may stop; False if it has to check again."""
        with self._guard:
            self._is_taken, self._is_asked = self._is_asked, False
            return not self._is_taken

    def abort(self) -> None:
        """Stop after an error, without checking again."""
        with self._guard:
            self._is_taken = self._is_asked = False


RUNNING: Final = _SingleDispatcher()


def run() -> None:
    """Send due deliveries until there are none, or for half a minute; safe to repeat."""
    if not RUNNING.start():
        return
    try:
        while True:
            is_done = _send_due()
            if RUNNING.finish():
                break
    except BaseException:
        RUNNING.abort()
        raise
    if not is_done:
        events.wake()


def _send_due() -> bool:
    """Send due deliveries; return False if the time ended first."""
    ends_at = time.monotonic() + RUN_S
    sent: dict[Future[WebhookAnswer | None], WebhookDelivery] = {}
    with ThreadPoolExecutor(MAX_REQUESTS, thread_name_prefix="webhooks") as pool:
        while True:
            in_time = time.monotonic() < ends_at
            if in_time and len(sent) < MAX_REQUESTS:
                for claim in delivery_queue.claim(MAX_REQUESTS - len(sent), now=timezone.now()):
                    sent[pool.submit(_send, claim)] = claim
            if not sent:
                return in_time
            done, _ = wait(sent, timeout=POLL_S, return_when=FIRST_COMPLETED)
            for each in done:
                _settle(sent.pop(each), each.result())


def _settle(delivery: WebhookDelivery, answer: WebhookAnswer | None) -> None:
    """Record a result; one that cannot be recorded costs the others none, and is sent again."""
    try:
        delivery_queue.settle(delivery, answer, now=timezone.now())
    except DatabaseError:
        raise
    except Exception:
        log.exception("webhook_not_settled", delivery=str(delivery.pk))


def _send(delivery: WebhookDelivery) -> WebhookAnswer | None:
    """Send one request, without using the database; None if ZSECRET_KEYS lacks its key.

    Another process may have the key already: keys are changed while deliveries are waiting.
    """
    endpoint = delivery.endpoint
    kept, ends_at = [endpoint.secret], endpoint.previous_secret_ends_at
    if endpoint.previous_secret and ends_at is not None and ends_at > timezone.now():
        kept.append(endpoint.previous_secret)
    try:
        body, secrets = decrypt(delivery.body).encode(), [*map(decrypt, kept)]
    except InvalidToken:
        log.error("webhook_unreadable", webhook=str(endpoint.pk), delivery=str(delivery.pk))  # noqa: TRY400 - no trace: it says nothing
        return None
    headers = signing.signed_headers(
        delivery_queue.message_id_of(delivery),
        body,
        sent_at=int(time.time()),
        signing_secrets=secrets,
    )
    headers |= {
        "Content-Type": "application/json",
        "User-Agent": f"{settings.SERVICE_NAME}-webhooks/1",
    }
    return egress.post(
        endpoint.url,
        body,
        headers,
        owner=delivery.organization_id,
        is_production=settings.IS_PRODUCTION,
    )
