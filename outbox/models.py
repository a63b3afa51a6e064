"""What is sent: mails and text messages; events to webhooks, and where they go."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.db import models

from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Organization

ERROR_CHARS: Final = 40
# The random part of a wait, which spreads the attempts after an outage.
JITTER: Final = 0.1
# Nothing is sent to a failing endpoint for this long, doubled with each failure in a row.
INITIAL_BACKOFF_S: Final = 5
MAX_BACKOFF_S: Final = 600


class OutboxRow(TenantModel):
    """A row of the outbox, whose state ``outbox.deliveries`` changes.

    attempts: the number of claims, which identifies the current claim.
    error: why the latest attempt failed, a code of ours.
    """

    QUEUED: ClassVar = "queued"
    SENDING: ClassVar = "sending"
    FAILED: ClassVar = "failed"
    # A model's states of what was sent and of what is never tried again by itself; the error of a
    # lost worker; the waits after each attempt of a series except the last.
    DONE: ClassVar[str]
    GIVEN_UP: ClassVar[str]
    LOST: ClassVar[str]
    WAITS_S: ClassVar[tuple[int, ...]]

    state: Any
    attempts_allowed: Any
    error: Any
    expires_at: Any
    finished_at: Any
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """Messages and events have a table each."""

        abstract = True

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)

    def wait_s(self) -> float | None:
        """Return the seconds until the next attempt; None after the last one."""
        left = self.attempts_allowed - self.attempts
        if left <= 0:
            return None
        # The low bits of a UUIDv7 are random.
        return self.WAITS_S[-left:][0] * (1 + JITTER * (self.pk.int % 1000) / 1000)

    def queue_again(self, at: datetime, *, error: str) -> None:
        """Queue it for a time, after an error."""
        self.state, self.next_attempt_at, self.claimed_at = self.QUEUED, at, None
        self.error = error[:ERROR_CHARS]
        self.save()

    def finish(self, state: str, *, error: str = "", now: datetime) -> None:
        """End it, as done, failed or given up."""
        self.state, self.finished_at = state, now
        self.next_attempt_at = self.claimed_at = None
        self.error = error[:ERROR_CHARS]
        self.save()


class WebhookEndpoint(TenantModel):
    """A URL of an organization, and the events that are sent to it.

    secret: encrypted; previous_secret signs as well until previous_secret_ends_at.
    failures, resting_until: consecutive failed attempts, and until when nothing is sent because of
    them.
    failing_since: of the first failure since the last success.
    created_by, creator_id: the member's address at that time and id.
    """

    class State(models.TextChoices):
        """Only an enabled endpoint gets events."""

        ENABLED = "enabled"
        DISABLED = "disabled"

    class Reason(models.TextChoices):
        """Why an endpoint is disabled."""

        BY_ADMIN = "by_admin"
        FAILING = "failing"
        GONE = "gone"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.CharField(max_length=2048)
    description = models.CharField(max_length=200, blank=True)
    events = ArrayField(models.CharField(max_length=40))
    state = models.CharField(max_length=10, choices=State, default=State.ENABLED)
    disabled_reason = models.CharField(max_length=10, choices=Reason, blank=True)
    secret = models.TextField()
    previous_secret = models.TextField(blank=True)
    previous_secret_ends_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    resting_until = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=254)
    creator_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField()

    # The secret's text, only on a newly created instance; not a column.
    text: str = ""

    def __str__(self) -> str:
        """Return the id: a URL may contain a secret of its owner."""
        return str(self.id)

    def note(self, *, is_failure: bool, now: datetime) -> None:
        """Note an attempt's result; after a failure nothing is sent for a while."""
        if is_failure:
            backoff_s = min(INITIAL_BACKOFF_S << min(self.failures, 10), MAX_BACKOFF_S)
            self.failures += 1
            self.resting_until = now + timedelta(seconds=backoff_s)
            self.failing_since = self.failing_since or now
        else:
            self.failures, self.resting_until, self.failing_since = 0, None, None
        self.save(update_fields=["failures", "resting_until", "failing_since"])

    @property
    def label(self) -> str:
        """The description, or else the URL's host."""
        return self.description or urlsplit(self.url).hostname or ""


class WebhookDelivery(OutboxRow):
    """One event for one endpoint; its id is that of the message in every attempt.

    body: encrypted; stored as long as the row, so that it can be sent again.
    log: of the latest attempts, ``{"at", "status", "error", "elapsed_ms"}``.
    """

    class State(models.TextChoices):
        """queued → sending → delivered; or back to queued; or failed permanently."""

        QUEUED = "queued"
        SENDING = "sending"
        DELIVERED = "delivered"
        FAILED = "failed"

    DONE = State.DELIVERED
    GIVEN_UP = State.FAILED
    LOST = "lost"
    # Eight attempts in about 22 hours.
    WAITS_S = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600)

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries"
    )
    event = models.CharField(max_length=40)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    attempts_allowed = models.PositiveIntegerField(default=8, db_default=8)
    # Of the release before, whose code counts with it: dropped in the next one.
    tries = models.PositiveIntegerField(default=0, db_default=0)
    last_status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.CharField(
        "last error", max_length=ERROR_CHARS, blank=True, db_column="last_error"
    )
    log = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(db_index=True)
    expires_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        """Unfinished deliveries are few, and are queried often."""

        verbose_name_plural = "webhook deliveries"
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["endpoint", "next_attempt_at"],
                condition=models.Q(state="queued"),
                name="webhook_delivery_queued",
            ),
            models.Index(
                fields=["organization", "endpoint"],
                condition=models.Q(state="sending"),
                name="webhook_delivery_sending",
            ),
        ]


class Delivery(OutboxRow):
    """One mail or text message; written by outbox.messages only.

    payload: recipient and content, encrypted; '' after it is sent or given up. The rest stays as a
    record: hint (the recipient, masked), template ('' for SMS), error.
    user_id: a plain id, because a notice outlives the account that it is about.
    """

    class Kind(models.TextChoices):
        """The channel."""

        MAIL = "mail"
        SMS = "sms"

    class State(models.TextChoices):
        """The progress of a delivery.

        queued → sending → sent; or back to queued; or failed (no attempts left: waits for an
        administrator); or given_up (refused permanently, expired, or failed too long ago).
        """

        QUEUED = "queued"
        SENDING = "sending"
        SENT = "sent"
        FAILED = "failed"
        GIVEN_UP = "given_up"

    DONE = State.SENT
    GIVEN_UP = State.GIVEN_UP
    LOST = "worker_lost"
    # Ten attempts in about two hours.
    WAITS_S = (15, 30, 60, 120, 240, 480, 960, 1920, 3600)

    kind = models.CharField(max_length=10, choices=Kind)
    template = models.CharField(max_length=40, blank=True)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.CASCADE, related_name="+"
    )
    user_id = models.UUIDField(null=True)
    hint = models.CharField(max_length=254)
    payload = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    attempts_allowed = models.PositiveIntegerField(default=10)
    error = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True, db_index=True)

    class Meta(TenantModel.Meta):
        """Unfinished deliveries are few, and are searched every five minutes."""

        verbose_name_plural = "deliveries"
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["state", "next_attempt_at"],
                condition=models.Q(state__in=["queued", "sending", "failed"]),
                name="delivery_unfinished",
            ),
        ]

    def finish(self, state: str, *, error: str = "", now: datetime) -> None:
        """End it; only a failed delivery keeps its content."""
        if state != self.FAILED:
            self.payload = ""
        super().finish(state, error=error, now=now)
