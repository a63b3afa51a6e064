"""Filters of the admin's lists whose choices are not read from a table."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter

BY_ORGANIZATION = ("organization", AutocompleteSelectFilter)


def by_values(field: str, values: Iterable[str], *, title: str = "") -> type[DropdownFilter]:
    """Return a filter of a text column by known values.

    Django's own reads all distinct values of the table for each page.
    """
    known = tuple((value, value) for value in values)

    class ByValues(_ByValues):
        """The filter of one column."""

        parameter_name = field
        choices_shown = known

    ByValues.title = title or field.replace("_", " ")
    return ByValues


class _ByValues(DropdownFilter):  # type: ignore[misc]  # unfold ships no types
    parameter_name = ""
    choices_shown: ClassVar[tuple[tuple[str, str], ...]] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> tuple[tuple[str, str], ...]:
        return self.choices_shown

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{self.parameter_name: value}) if value else queryset
