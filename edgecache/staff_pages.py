"""The admin's pages over the brain: nodes, buckets, hosts, origins and access keys of all tenants.

Only the brain reads its tables, so these are not lists of Django's models. The admin's site adds
them to its URLs (platform_site/staff/site.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.timezone import localtime
from django.views.decorators.http import require_GET, require_http_methods

from common.admin import actions
from common.admin.actions import ConfirmedAction, StaffAction
from common.admin.columns import link_to_organization
from common.errors import PlatformError
from edgecache.api import nodes, staff_overview
from edgecache.api.staff_overview import OverviewQuery, RowPage
from edgecache.protocol.resources import AccessKeyOptions, BucketOptions, OriginOptions
from environments.models import Environment, Organization

Cell = Callable[[dict[str, Any]], Any]
DECISIONS: Final = {
    "approve": ("Approve", "The node serves objects and earns its operator's share."),
    "quarantine": ("Quarantine", "The node is asked for nothing, until it is approved again."),
    "drain": ("Drain", "Nothing new is stored on the node, and what it holds is moved elsewhere."),
}
HARMFUL: Final = "quarantine"


@dataclass(frozen=True, slots=True)
class StaffList:
    """A list. columns: by their title. filters: choices by the field of ``OverviewQuery``."""

    slug: str
    title: str
    empty: str
    search: str
    read: Callable[[OverviewQuery], RowPage]
    columns: dict[str, Cell]
    filters: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class NodePageRow:
    """A node on the page that asks for the reason."""

    pk: str
    endpoint: str
    status: str

    def __str__(self) -> str:
        return f"{self.endpoint} ({self.status}), {self.pk}"


def urls(site: AdminSite) -> list[URLPattern]:
    """Return the paths; the site checks that the user is staff."""
    pages = [
        path(
            f"edgecache/{each.slug}/",
            site.admin_view(require_GET(_list_view(site, each))),
            name=f"edgecache_{each.slug.replace('-', '_')}",
        )
        for each in LISTINGS
    ]
    decide = require_http_methods(["GET", "POST"])(_decide_view(site))
    node = "edgecache/nodes/<uuid:node_id>/<slug:decision>/"
    return [*pages, path(node, site.admin_view(decide), name="edgecache_decide")]


def _list_view(site: AdminSite, listing: StaffList) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest) -> HttpResponse:
        wanted = OverviewQuery(
            **{name: request.GET.get(name, "").strip() for name in OverviewQuery.__slots__}
        )
        page = RowPage([])
        try:
            page = listing.read(wanted)
        except PlatformError as exc:
            messages.error(request, exc.detail or exc.title)
        context = {
            **site.each_context(request),
            "title": listing.title,
            "listing": listing,
            "wanted": wanted,
            "filters": [
                {"name": name, "choices": choices, "value": getattr(wanted, name)}
                for name, choices in listing.filters.items()
            ],
            "rows": [
                {
                    "cells": [cell(row) for cell in listing.columns.values()],
                    "decisions": _decisions(request, row),
                }
                for row in _named(page.rows)
            ],
            "next": _next_page(request, page),
        }
        return TemplateResponse(request, "admin/edgecache/list.html", context)

    return view


# Any: the platform's own site, which is in a higher layer.
def _decide_view(site: Any) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest, node_id: Any, decision: str) -> HttpResponse:
        if decision not in DECISIONS:
            raise Http404
        if not actions.may_act(request):
            raise PermissionDenied
        back = reverse("admin:edgecache_nodes")
        action = StaffAction(
            decision,
            *DECISIONS[decision],
            work=partial(_decide, decision),
            is_harmful=decision == HARMFUL,
        )
        try:
            found = nodes.read(str(node_id))
        except PlatformError as exc:
            messages.error(request, exc.detail or exc.title)
            return HttpResponseRedirect(back)
        node = NodePageRow(found["node_id"], found["endpoint"], found["status"])
        confirmed_action = actions.confirmed(site, request)
        if confirmed_action is None:
            context = {**site.each_context(request), "back": back}
            return actions.confirmation(site, request, context, action, [node])
        actions.do(action, confirmed_action, [node])
        return HttpResponseRedirect(back)

    return view


def _decide(decision: str, confirmed_action: ConfirmedAction, node: NodePageRow) -> bool:
    staff_overview.decide(
        confirmed_action.request, node.pk, decision, reason=confirmed_action.reason
    )
    return True


def _decisions(request: HttpRequest, row: dict[str, Any]) -> list[dict[str, Any]]:
    if not actions.may_act(request):
        return []
    return [
        {
            "title": DECISIONS[each][0],
            "path": reverse("admin:edgecache_decide", args=[row["node_id"], each]),
            "is_harmful": each == HARMFUL,
        }
        for each in row.get("decisions", ())
    ]


def _next_page(request: HttpRequest, page: RowPage) -> str:
    if page.following is None:
        return ""
    query = request.GET.copy()
    query["after"] = page.following
    return query.urlencode()


def _named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the names that the brain does not know, with one query for each kind."""
    owners = {row["organization_id"] for row in rows} - {None}
    environment_pks = {row["environment_pk"] for row in rows if "environment_pk" in row}
    organizations = dict(Organization.objects.filter(pk__in=owners).values_list("pk", "name"))

    live = Environment.objects.filter(pk__in=environment_pks)
    environments = dict(live.values_list("pk", "slug"))
    return [
        row
        | {
            "organization": organizations.get(row["organization_id"], ""),
            "environment": environments.get(row.get("environment_pk")),
        }
        for row in rows
    ]


def _text(name: str, *, empty: str = "–") -> Cell:
    return lambda row: empty if row[name] in {None, ""} else row[name]


def _size(name: str) -> Cell:
    return lambda row: filesizeformat(row[name])


def _time(name: str) -> Cell:
    def shown(row: dict[str, Any]) -> str:
        moment = parse_datetime(row[name]) if row[name] else None
        return date_format(localtime(moment), "DATETIME_FORMAT") if moment else "never"

    return shown


def _title(option: str) -> str:
    """Return the title of an option's column, such as ``Forwards writes``."""
    return option.removeprefix("is_").replace("_", " ").capitalize()


def _option(name: str) -> Cell:
    def shown(row: dict[str, Any]) -> Any:
        match row[name]:
            case bool() as is_set:
                return "yes" if is_set else "no"
            case list() as words:
                return ", ".join(words) or "–"
        return _text(name)(row)

    return shown


def _organization(row: dict[str, Any]) -> Any:
    return link_to_organization(row["organization_id"], row["organization"])


def _environment(row: dict[str, Any]) -> Any:
    if row["environment"] is None:
        # Its rows are deleted, and the brain deletes its data next.
        return f"deleted ({row['environment_pk']})"
    path = reverse("admin:environments_environment_change", args=[row["environment_pk"]])
    return format_html('<a href="{}">{}</a>', path, row["environment"])


def _config(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in sorted(row["config"].items()))


def _page_of(kind: str) -> Callable[[OverviewQuery], RowPage]:
    return lambda wanted: staff_overview.page_of(kind, wanted)


OWNER: Final[dict[str, Cell]] = {
    "Organization": _organization,
    "Environment": _environment,
}
LISTINGS: Final = (
    StaffList(
        "nodes",
        "Nodes",
        "No node matches.",
        "Endpoint or id",
        staff_overview.matching_nodes,
        {
            "Endpoint": _text("endpoint"),
            "Region": _text("region"),
            "Organization": _organization,
            "Status": _text("status"),
            "Reason": _text("status_reason"),
            "Health": _text("health"),
            "Used": _size("used_bytes"),
            "Capacity": _size("capacity_bytes"),
            "Objects": _text("object_count"),
            "Last seen": _time("last_seen_at"),
            "Id": _text("node_id"),
        },
        {"status": tuple(staff_overview.DECISIONS)},
    ),
    StaffList(
        "buckets",
        "Buckets",
        "No bucket matches.",
        "Part of the name",
        _page_of("buckets"),
        {
            "Name": _text("name"),
            **OWNER,
            "Origin": _text("origin", empty="built in"),
            **{_title(name): _option(name) for name in BucketOptions.__struct_fields__},
            "Public name": _text("public_name"),
            "Created": _time("created_at"),
        },
        {},
    ),
    StaffList(
        "hosts",
        "Hosts",
        "No host matches.",
        "Part of the host",
        _page_of("bucket-hosts"),
        {
            "Host": _text("host"),
            "Bucket": _text("bucket"),
            **OWNER,
            "Proved": _time("proved_at"),
            "Record checked": _time("checked_at"),
            "Record missing since": _time("gone_since"),
        },
        {},
    ),
    StaffList(
        "origins",
        "Origins",
        "No origin matches.",
        "Part of the name or configuration",
        _page_of("origins"),
        {
            "Name": _text("name"),
            "Kind": _text("kind"),
            **OWNER,
            "Configuration": _config,
            **{_title(name): _option(name) for name in OriginOptions.__struct_fields__},
            "Created by": _text("created_by"),
            "Created": _time("created_at"),
        },
        {},
    ),
    StaffList(
        "keys",
        "Access keys",
        "No access key matches.",
        "Part of the id or label",
        _page_of("access-keys"),
        {
            "Id": _text("access_key_id"),
            **OWNER,
            **{_title(name): _option(name) for name in AccessKeyOptions.__struct_fields__},
            "Created by": _text("created_by"),
            "Created": _time("created_at"),
            "Last used": _time("last_used_at"),
        },
        {},
    ),
)
