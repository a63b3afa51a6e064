"""Tables without a page in the admin, whose rows therefore need no label."""

from django.db import models


class Table(models.Model):
    """A model whose rows no page names."""

    class Meta:
        abstract = True
