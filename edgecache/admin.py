"""The cache in the admin: metrics over time, and the brain's nodes, buckets and access keys.

The latter ask the brain's API: only the brain reads its tables.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_GET, require_POST

from accounts.admin import ReadOnlyAdmin
from edgecache.api import staff_overview
from edgecache.api.staff_overview import Page
from edgecache.models import CacheSample
from platform_site.lib.errors import PlatformError


@admin.register(CacheSample)
class CacheSampleAdmin(ReadOnlyAdmin):
    """The metrics' history, and the pages that ask the brain."""

    list_display = (
        *("moment", "is_hourly", "hit_ratio", "total_hits", "total_misses"),
        *("bytes_served", "active_nodes", "p95_latency_ms"),
    )
    list_filter = ("is_hourly",)
    date_hierarchy = "moment"
    change_list_template = "admin/edgecache/samples.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the pages over the brain."""
        wrap: Callable[[Any], Any] = self.admin_site.admin_view
        return [
            path("nodes/", wrap(require_GET(self.nodes)), name="edgecache_nodes"),
            path(
                "nodes/<uuid:node_id>/<slug:decision>/",
                wrap(require_POST(self.decide)),
                name="edgecache_decide",
            ),
            path("buckets/", wrap(require_GET(self.buckets)), name="edgecache_buckets"),
            path("keys/", wrap(require_GET(self.keys)), name="edgecache_keys"),
            *super().get_urls(),
        ]

    def nodes(self, request: HttpRequest) -> HttpResponse:
        """Show every node, with the possible decisions."""
        return self._page(
            request, "Nodes", "nodes.html", lambda _after: Page(staff_overview.all_nodes())
        )

    def buckets(self, request: HttpRequest) -> HttpResponse:
        """Show every bucket."""
        return self._page(request, "Buckets", "buckets.html", staff_overview.all_buckets)

    def keys(self, request: HttpRequest) -> HttpResponse:
        """Show every access key, without secrets."""
        return self._page(request, "Access keys", "keys.html", staff_overview.all_keys)

    def decide(self, request: HttpRequest, node_id: Any, decision: str) -> HttpResponse:
        """Carry out a decision about a node; the audit trail keeps who decided and why."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            staff_overview.decide(
                request, str(node_id), decision, reason=request.POST.get("reason", "")
            )
        except PlatformError as exc:
            messages.error(request, exc.detail or exc.title)
        else:
            messages.success(request, f"Node {node_id}: {decision} is done.")
        return HttpResponseRedirect(reverse("admin:edgecache_nodes"))

    def _page(
        self, request: HttpRequest, title: str, template: str, read: Callable[[str], Page]
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {**self.admin_site.each_context(request), "title": title, "page": Page([])}
        try:
            context["page"] = read(request.GET.get("after", ""))
        except PlatformError as exc:
            messages.error(request, exc.detail or exc.title)
        return TemplateResponse(request, f"admin/edgecache/{template}", context)
