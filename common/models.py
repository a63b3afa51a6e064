"""Base of the models that have no page in the admin, so that they need no ``__str__``.

The counters of rate limits.
"""

from django.db import models


class ModelWithoutLabel(models.Model):
    class Meta:
        abstract = True


class Throttle(models.Model):
    """One counter of failures or uses, written by rate_limits.py only."""

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    last_at = models.DateTimeField()
    blocked_until = models.DateTimeField()

    def __str__(self) -> str:
        """Return the key, a digest."""
        return self.key
