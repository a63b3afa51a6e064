"""The counters behind the limits."""

from django.db import models


class Throttle(models.Model):
    """One counter of failures; see limits.py, which alone writes it."""

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    last_at = models.DateTimeField()
    blocked_until = models.DateTimeField()

    def __str__(self) -> str:
        """Return the key, a digest."""
        return self.key
