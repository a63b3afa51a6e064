"""Activity of the platform over time, for the admin's dashboard, in bounded tables."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class ActivitySample(models.Model):
    """Sign-ins and SQL of all tenants in ten minutes, kept for eight days (staff/activity.py).

    begins_at: the start of the ten minutes. sql_*: of the requests in the SQL history.
    """

    begins_at = models.DateTimeField(unique=True)
    sign_ins = models.PositiveIntegerField()
    sign_ins_refused = models.PositiveIntegerField()
    sql_requests = models.PositiveIntegerField()
    sql_errors = models.PositiveIntegerField()
    sql_p50_ms = models.FloatField(null=True)
    sql_p95_ms = models.FloatField(null=True)

    def __str__(self) -> str:
        """Return the start."""
        return f"{self.begins_at:%Y-%m-%d %H:%M}"


class HttpSample(models.Model):
    """HTTP requests of all web processes in ten minutes, kept for eight days.

    errors: responses with status 500 and above. counts: of requests by latency
    (common/metrics/http_tally.py).
    """

    begins_at = models.DateTimeField(unique=True)
    requests = models.BigIntegerField()
    errors = models.BigIntegerField()
    counts = ArrayField(models.BigIntegerField())

    def __str__(self) -> str:
        """Return the start."""
        return f"{self.begins_at:%Y-%m-%d %H:%M}"


class ActiveOrganization(models.Model):
    """An organization that signed in or used SQL on a day (UTC), kept for 31 days."""

    day = models.DateField()
    organization_id = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "organization_id"], name="active_organization_once"
            )
        ]

    def __str__(self) -> str:
        """Return a label."""
        return f"{self.organization_id} on {self.day}"
