"""Base classes of the admin's pages: read-only, and fast with millions of rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.core.paginator import Paginator
from django.db import DataError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import cached_property
from django.utils.text import capfirst
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

# Maximum rows that a list counts and shows; the search finds the others.
MAX_COUNTED: Final = 100_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages over at most MAX_COUNTED rows: counting all rows of a large table takes seconds."""

    template_name = "admin/pages.html"

    @cached_property
    def count(self) -> int:
        """Return the number of rows, at most MAX_COUNTED."""
        return min(self._counted, MAX_COUNTED)

    @property
    def has_more(self) -> bool:
        """True if there are rows after the last page."""
        return self._counted > MAX_COUNTED

    @cached_property
    def _counted(self) -> int:
        rows: Any = self.object_list
        return int(rows[: MAX_COUNTED + 1].count())


class RowList(ChangeList):  # type: ignore[misc]  # unfold ships no types
    """A list that says what it shows: how many rows, and by what they are narrowed down."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = capfirst(self.opts.verbose_name_plural)

    def get_results(self, request: HttpRequest) -> None:
        """Read the rows of the page."""
        super().get_results(request)
        # Unfold's header would offer "Show all" beside the count: a link to the first page.
        self.full_result_count = self.result_count

    @property
    def count_text(self) -> str:
        """Return how many rows there are, such as "10,003 organizations"."""
        number, opts = self.result_count, self.opts
        name = opts.verbose_name if number == 1 else opts.verbose_name_plural
        return f"{'More than ' if self.paginator.has_more else ''}{number:,} {name}"

    @property
    def is_narrowed(self) -> bool:
        """True if a search or a filter leaves rows out."""
        return bool(self.query or self.get_filters_params())

    @cached_property
    def narrowed_by(self) -> dict[str, str]:
        """Return the filters of the address that are not among those to choose from, in words."""
        offered = {name for spec in self.filter_specs for name in spec.expected_parameters()}
        chosen: Mapping[str, list[str]] = self.get_filters_params()
        return {
            name: f"{name.removesuffix('__exact').replace('_', ' ')} {', '.join(values)}"
            for name, values in chosen.items()
            if name not in offered
        }

    @property
    def widened_path(self) -> str:
        """Return the list's address without these filters."""
        path: str = self.get_query_string(remove=list(self.narrowed_by))
        return path


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Read-only rows; changes are made by actions with a reason, or by commands."""

    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_filter_submit = True
    list_fullwidth = True
    list_before_template = "admin/list_note.html"
    # Each counts all rows of the table once more.
    show_facets = ShowFacets.NEVER
    # Where a number that is searched for is looked up, by an index: as text it takes every row.
    number_fields: Sequence[str] = ()
    # Where what has an "@" is looked up: a part of the address of a row's user, without a join.
    address_field = ""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[RowList]:
        """Return the class of the list."""
        return RowList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search for a number in the columns of numbers alone, for an address in its own."""
        text = search_term.strip()
        if self.number_fields and text.isdecimal():
            wanted = Q.create([(name, text) for name in self.number_fields], connector=Q.OR)
            return queryset.filter(wanted), False
        if self.address_field and "@" in text:
            owners = self.get_queryset(request).filter(**{f"{self.address_field}__icontains": text})
            return queryset.filter(pk__in=owners.values("pk")), False
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
        except (ValueError, OverflowError, DataError):
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
