"""What is sent: mails and text messages; events to webhooks, and where they go."""

from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.db import models

from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Organization


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

    @property
    def label(self) -> str:
        """The description, or else the URL's host."""
        return self.description or urlsplit(self.url).hostname or ""


class WebhookDelivery(TenantModel):
    """One event for one endpoint; its id is that of the message in every attempt.

    body: encrypted; stored as long as the row, so that it can be sent again.
    attempts: the number of claims, which identifies the current claim.
    log: of the latest attempts, ``{"at", "status", "error", "elapsed_ms"}``.
    """

    class State(models.TextChoices):
        """queued → sending → delivered; or back to queued; or failed permanently."""

        QUEUED = "queued"
        SENDING = "sending"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries"
    )
    event = models.CharField(max_length=40)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    tries = models.PositiveIntegerField(default=0)
    last_status = models.PositiveSmallIntegerField(null=True, blank=True)
    last_error = models.CharField(max_length=40, blank=True)
    log = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(db_index=True)
    expires_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
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

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)

    def finish(self, state: "WebhookDelivery.State", *, now: datetime) -> None:
        """Set the state to delivered or failed, without saving."""
        self.state, self.finished_at = state, now
        self.next_attempt_at = self.claimed_at = None


class Delivery(TenantModel):
    """One mail or text message; written by outbox.messages only.

    payload: recipient and content, encrypted; '' after it is sent or given up. The rest stays as a
    record: hint (the recipient, masked), template ('' for SMS), error (a code).
    attempts: the number of claims, which identifies the current claim.
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

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=10, choices=Kind)
    template = models.CharField(max_length=40, blank=True)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.CASCADE, related_name="+"
    )
    user_id = models.UUIDField(null=True)
    hint = models.CharField(max_length=254)
    payload = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    attempts_allowed = models.PositiveIntegerField(default=10)
    error = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    next_attempt_at = models.DateTimeField(null=True)
    claimed_at = models.DateTimeField(null=True)
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

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)

    def finish(self, state: "Delivery.State", *, error: str = "", now: datetime) -> None:
        """Finish as sent, given up or failed; only a failed delivery keeps its content."""
        self.state = state
        self.error = error[:60]
        self.next_attempt_at = self.claimed_at = None
        self.finished_at = now
        if state != self.State.FAILED:
            self.payload = ""
        self.save()
