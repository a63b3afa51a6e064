"""Rows of any model, each with its own related rows, so that a query for each row is seen."""

import datetime
import uuid
from collections.abc import Mapping
from itertools import count
from typing import Any, Final, cast

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from billing.models.ledger import Account, Journal
from billing.models.payouts import Payout
from sqlgateway.models import Database

NOBODY: Final[Mapping[type[models.Model], models.Model]] = {}
_numbers = count(1)
# What a constraint of the table asks for.
CHOSEN: dict[type[models.Model], Any] = {
    Account: lambda number: {"kind": "granted", "organization_id": number},
    Payout: lambda number: {"state": "confirmed"},
    Journal: lambda number: {"kind": "grant"},
    Database: lambda number: {"copy_source": None},
}


def add(
    model: type[models.Model],
    number: int,
    *,
    owners: Mapping[type[models.Model], models.Model] = NOBODY,
) -> None:
    """Add rows of a model. owners: what they refer to instead of new rows, by its model."""
    for _ in range(number):
        _add_one(model, owners)


def _add_one(
    model: type[models.Model], owners: Mapping[type[models.Model], models.Model]
) -> models.Model:
    number = next(_numbers)
    values = CHOSEN.get(model, lambda _: {})(number)
    for field in model._meta.concrete_fields:
        is_set = field.name in values or field.attname in values
        if not is_set and not isinstance(field, models.AutoField):
            values[field.name] = _value(field, number, owners)
    row = model(**values)
    row.save(force_insert=True)
    return row


def _value(field: Any, number: int, owners: Mapping[type[models.Model], models.Model]) -> Any:
    if isinstance(field, models.ForeignKey):
        related = cast("type[models.Model]", field.related_model)
        is_own = related is field.model
        return None if is_own else owners.get(related) or _add_one(related, owners)
    if field.null and field.name.endswith("_at"):
        return timezone.now()
    if field.choices:
        return field.choices[0][0]
    return _of_kind(field, number)


def _of_kind(field: Any, number: int) -> Any:
    if isinstance(field, ArrayField):
        is_text = isinstance(field.base_field, models.CharField)
        return ["admin" if is_text else _of_kind(field.base_field, number)]
    kinds: list[tuple[type[models.Field[Any, Any]], Any]] = [
        (models.BooleanField, False),
        (models.DateTimeField, timezone.now() - datetime.timedelta(seconds=number)),
        (models.DateField, timezone.now().date() - datetime.timedelta(days=number)),
        (models.UUIDField, uuid.uuid4()),
        (models.IntegerField, number),
        (models.FloatField, 1.0),
        (models.DecimalField, 1),
        (models.JSONField, {}),
        (models.BinaryField, str(number).encode()),
        (models.GenericIPAddressField, "127.0.0.1"),
        (models.EmailField, f"person{number}@example.com"),
        (models.TextField, f"text {number}"),
        (models.CharField, f"n{number}"[: field.max_length or 20]),
    ]
    return next(value for kind, value in kinds if isinstance(field, kind))
