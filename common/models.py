"""Base of the models that have no page in the admin, so that they need no ``__str__``."""

from django.db import models


class ModelWithoutLabel(models.Model):
    class Meta:
        abstract = True
