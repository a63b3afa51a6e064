"""Filters of the admin's lists whose choices are not read from a table."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin import FieldListFilter
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


class Days(FieldListFilter):
    """The rows of a span of days (UTC), the last one included; of one day, if both are the same."""

    template = "admin/filter_days.html"

    def __init__(
        self,
        field: Any,
        request: HttpRequest,
        params: Any,
        model: Any,
        model_admin: Any,
        field_path: str,
    ) -> None:
        self._names = (f"{field_path}_from", f"{field_path}_to")
        super().__init__(field, request, params, model, model_admin, field_path)

    def expected_parameters(self) -> list[str | None]:
        """Return the names of both days."""
        return [*self._names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Apply the span. Raises ValueError for what is no day."""
        first, last = (self._day(name) for name in self._names)
        if first and last and first > last:
            messages.error(request, "The first day is after the last one: nothing is shown.")
        if first:
            queryset = queryset.filter(**{f"{self.field_path}__gte": _begin_of(first)})
        if last:
            until = _begin_of(last + timedelta(days=1))
            queryset = queryset.filter(**{f"{self.field_path}__lt": until})
        return queryset

    def choices(self, _changelist: Any) -> Iterator[Any]:
        """Yield the form."""
        form = forms.Form({name: self._text(name) for name in self._names})
        for name, label in zip(self._names, ("From (UTC)", "To (UTC)"), strict=True):
            widget = forms.DateInput({"type": "date", "class": "staff-field"})
            form.fields[name] = forms.DateField(label=label, required=False, widget=widget)
        yield {"form": form}

    def _day(self, name: str) -> date | None:
        text = self._text(name)
        return date.fromisoformat(text) if text else None

    def _text(self, name: str) -> str:
        values: Any = self.used_parameters.get(name)
        return str(values[-1]) if values else ""


def _begin_of(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), tzinfo=UTC)
