"""A base of models without a page in the admin, and the counters of rate limits."""

from django.db import models


class ModelWithoutLabel(models.Model):
    """A model that has no page in the admin, so that it needs no ``__str__``."""

    class Meta:
        """It has no table."""

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
