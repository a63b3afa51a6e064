"""Deliveries: mail and text messages."""

from datetime import datetime
from typing import Any, ClassVar

from django.db import models

from common.ids import uuid7
from common.scoping import TenantModel
from environments.models import Organization


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
