"""Base classes of the admin's pages: read-only, and fast with millions of rows."""

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import DataError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import cached_property
from unfold.admin import ModelAdmin

# Maximum rows that a list counts and shows; the search finds the others.
MAX_COUNTED: Final = 10_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages over at most 10,000 rows: counting all rows of a large table takes seconds."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, at most MAX_COUNTED."""
        rows: Any = self.object_list
        return int(rows[:MAX_COUNTED].count())


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Read-only rows; changes are made by actions with a reason, or by commands."""

    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_filter_submit = True
    list_fullwidth = True
    # Where a number that is searched for is looked up, by an index: as text it takes every row.
    number_fields: Sequence[str] = ()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search for a number in the columns of numbers alone."""
        number = search_term.strip()
        if self.number_fields and number.isdecimal():
            wanted = Q.create([(name, number) for name in self.number_fields], connector=Q.OR)
            return queryset.filter(wanted), False
        found: tuple[QuerySet[Any], bool] = super().get_search_results(
            request, queryset, search_term
        )
        return found

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse a filter by a column that is not shown: the rows found would tell its value."""
        name = lookup.partition("__")[0]
        columns = {field.name for field in self.opts.concrete_fields}
        hidden = {*(self.exclude or ())} | (columns - {*self.fields} if self.fields else set())
        return name not in hidden and bool(super().lookup_allowed(lookup, value, request))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list without a filter that has an impossible value, such as the year 99999."""
        try:
            page: HttpResponse = super().changelist_view(request, extra_context)
        except (ValueError, DataError):
            if not request.GET or request.method != "GET":
                raise
            messages.error(request, "The list cannot be filtered by this value.")
            return HttpResponseRedirect(request.path)
        return page

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: rows are not added here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: rows are not edited here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: rows are not deleted here."""
        return False
