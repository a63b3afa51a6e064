"""The dispatcher: sends what is due, many requests concurrently, in one place of the task worker.

However many servers are slow, the worker's other places go on with mail and all else.
"""

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import Final

from django.conf import settings
from django.utils import timezone

from accounts.webhooks import deliveries, egress, jobs, signing
from accounts.webhooks.deliveries import Claim
from accounts.webhooks.egress import Answer

# Concurrent requests in one process; deliveries.SHARE has an organization's part.
PLACES: Final = 32
# Then the next job goes on, so that a worker can be restarted.
RUN_S: Final = 30.0
POLL_S: Final = 0.5


class _Turn:
    """Lets one dispatcher of a process run; another one only asks it to look again."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._is_taken = self._is_asked = False

    def take(self) -> bool:
        """True if the caller may run."""
        with self._guard:
            self._is_asked = self._is_taken
            free, self._is_taken = not self._is_taken, True
            return free

    def end(self) -> bool:
        """True if the caller may stop; false if it was asked to look again."""
        with self._guard:
            self._is_taken, self._is_asked = self._is_asked, False
            return not self._is_taken

    def drop(self) -> None:
        """Stop, whatever was asked."""
        with self._guard:
            self._is_taken = self._is_asked = False


TURN: Final = _Turn()


def run() -> None:
    """Send what is due until nothing is, or for half a minute; safe to repeat."""
    if not TURN.take():
        return
    try:
        while True:
            is_done = _send_due()
            if TURN.end():
                break
    except BaseException:
        TURN.drop()
        raise
    if not is_done:
        jobs.wake()


def _send_due() -> bool:
    """Send what is due; return false if time was up first."""
    ends_at = time.monotonic() + RUN_S
    sent: dict[Future[Answer], Claim] = {}
    with ThreadPoolExecutor(PLACES, thread_name_prefix="webhooks") as pool:
        while True:
            in_time = time.monotonic() < ends_at
            if in_time and len(sent) < PLACES:
                for claim in deliveries.claim(PLACES - len(sent), now=timezone.now()):
                    sent[pool.submit(_send, claim)] = claim
            if not sent:
                return in_time
            done, _ = wait(sent, timeout=POLL_S, return_when=FIRST_COMPLETED)
            for each in done:
                deliveries.settle(sent.pop(each), each.result(), now=timezone.now())


def _send(claim: Claim) -> Answer:
    """Send one request; nothing here touches the database."""
    headers = signing.headers(
        claim.message_id,
        claim.body,
        sent_at=int(time.time()),
        signing_secrets=claim.secrets,
    )
    headers |= {
        "Content-Type": "application/json",
        "User-Agent": f"{settings.SERVICE_NAME}-webhooks/1",
    }
    return egress.post(
        *(claim.url, claim.body, headers),
        owner=claim.organization_id,
        is_production=settings.IS_PRODUCTION,
    )
