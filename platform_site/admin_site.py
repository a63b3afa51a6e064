"""The admin site: platform staff with a second factor, nobody else."""

from django.http import HttpRequest
from unfold.sites import UnfoldAdminSite

from platform_site.admin_login import StaffLoginForm, is_proven


class PlatformAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold ships no types
    """Django's admin in unfold's clothes."""

    login_form = StaffLoginForm
    login_template = "admin/staff_login.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """Let in active staff who have shown their second factor in this session."""
        user = request.user
        return bool(user.is_active and getattr(user, "is_staff", False) and is_proven(request))
