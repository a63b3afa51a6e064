"""What all of the brain's tables have in common."""

from django.db import models


class Table(models.Model):
    """A table that SQL reads. Nothing prints its rows, so they need no label."""

    class Meta:
        abstract = True
