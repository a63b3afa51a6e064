"""Whether other operators' nodes serve an organization's objects."""

from datetime import datetime, timedelta
from typing import Final, Literal

from django.db import models

from common.models import ModelWithoutLabel

ServiceStatus = Literal["ok", "grace", "stopped"]
StopReason = Literal["credits", "spend_cap"]

TICK: Final = timedelta(microseconds=1)


class ServiceState(ModelWithoutLabel):
    """An organization that has, or once had, no credits left or reached its spend cap.

    ran_out_at: when the first line was charged that no credits covered; None without a debt.
    warned_at: when the notice about the end of the grace was queued.
    stopped_at: when other operators' nodes stopped serving because of that.
    capped_month: the first day of the month in which the spend cap was reached.
    decided_at: of the last decision for the brain; its version.
    notified_at: of the last decision that the brain has confirmed.
    """

    organization_id = models.BigIntegerField(primary_key=True)
    ran_out_at = models.DateTimeField(null=True)
    warned_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    capped_month = models.DateField(null=True)
    decided_at = models.DateTimeField(null=True)
    notified_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["organization_id"],
                condition=models.Q(ran_out_at__isnull=False),
                name="service_without_credits",
            )
        ]

    @property
    def is_stopped(self) -> bool:
        """True if other operators' nodes do not serve the organization's objects."""
        return self.stopped_by is not None

    @property
    def stopped_by(self) -> StopReason | None:
        """Return why, None if they serve."""
        if self.stopped_at is not None:
            return "credits"
        return None if self.capped_month is None else "spend_cap"

    @property
    def status(self) -> ServiceStatus:
        if self.is_stopped:
            return "stopped"
        return "ok" if self.ran_out_at is None else "grace"

    def decide(self, *, now: datetime) -> None:
        """Note that the brain has to know; a decision is later than those before, by any clock."""
        self.decided_at = now if self.decided_at is None else max(now, self.decided_at + TICK)


class SpendCap(ModelWithoutLabel):
    """The maximum cost of an organization's usage in a month.

    warned_month, reached_month: the first day of the month in which the mail at 80 % and at 100 %
    was queued.
    """

    organization_id = models.BigIntegerField(primary_key=True)
    cap_ucr = models.BigIntegerField()
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=254)
    warned_month = models.DateField(null=True)
    reached_month = models.DateField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(cap_ucr__gte=0), name="cap_not_negative")
        ]
