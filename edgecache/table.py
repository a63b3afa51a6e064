"""Tables without a page in the admin, whose rows therefore need no label."""

from django.db import models


class Table(models.Model):
    """A table of whose rows nothing prints one."""

    class Meta:
        abstract = True
