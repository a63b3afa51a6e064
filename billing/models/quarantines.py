"""Quarantines of operators' nodes: forfeited earnings, appeals and decisions."""

from django.db import models
from django.db.models.functions import Now

from common.ids import uuid7


class Quarantine(models.Model):
    """A quarantine of an operator's node, which serves nothing until it is approved again.

    event: the brain's number of it; a brain restored from a backup may reuse it. node and began_at:
    unique.
    organization_id: the operator's.
    ended_at: when the node was approved again; empty if the node was removed.
    forfeited_ucr: how much of the node's earnings staff took.
    decision: about the appeal; rejecting it forfeits nothing by itself.

    The operator's payouts wait while the quarantine is open: not ended, not forfeited and no appeal
    granted.
    """

    class Decision(models.TextChoices):
        """What staff decided about an appeal."""

        GRANTED = "granted"
        REJECTED = "rejected"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    event = models.BigIntegerField()
    node_id = models.UUIDField()
    organization_id = models.BigIntegerField()
    reason = models.CharField(max_length=255)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    forfeited_ucr = models.BigIntegerField(db_default=0)
    forfeit_reason = models.CharField(max_length=500, blank=True, db_default="")
    forfeited_at = models.DateTimeField(null=True, blank=True)
    forfeited_by = models.CharField(max_length=254, blank=True, db_default="")
    appeal = models.CharField(max_length=2000, blank=True, db_default="")
    appealed_at = models.DateTimeField(null=True, blank=True)
    appealed_by = models.CharField(max_length=254, blank=True, db_default="")
    decision = models.CharField(
        max_length=8, choices=Decision.choices, blank=True, db_default="", default=""
    )
    decision_reason = models.CharField(max_length=500, blank=True, db_default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=254, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node_id", "began_at"], name="quarantine_once"),
            models.CheckConstraint(
                condition=models.Q(forfeited_ucr__gte=0), name="quarantine_forfeit_not_negative"
            ),
        ]
        indexes = [models.Index(fields=["organization_id", "id"], name="quarantine_of_operator")]

    def __str__(self) -> str:
        return f"{self.node_id} from {self.began_at:%Y-%m-%d %H:%M}"

    @classmethod
    def undecided_of(cls, organization_id: int) -> models.QuerySet["Quarantine"]:
        """Return the quarantines of an operator's nodes that staff has not decided about."""
        return cls.objects.filter(
            organization_id=organization_id, ended_at=None, forfeited_at=None
        ).exclude(decision=cls.Decision.GRANTED)

    @property
    def state(self) -> str:
        """Return how far it has come, for people."""
        if self.decision:
            return self.decision
        if self.appealed_at:
            return "appealed"
        if self.forfeited_at:
            return "forfeited"
        return "ended" if self.ended_at else "open"
