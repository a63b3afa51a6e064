"""Columns of several lists in the admin."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString


def link_to_organization(organization_id: int | None, name: str = "") -> str | SafeString:
    """Return a link to an organization's page, without reading its row.

    name: shown if known, else the number.
    """
    if organization_id is None:
        return "platform"
    path = reverse("admin:environments_organization_change", args=[organization_id])
    return format_html('<a href="{}">{}</a>', path, name or organization_id)


@admin.display(description="Organization", ordering="organization_id")
def organization(row: Any) -> str | SafeString:
    """Return the link for a row that stores the organization as a plain number."""
    return link_to_organization(row.organization_id)
