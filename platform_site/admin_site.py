"""The admin site: platform staff only."""

from django.http import HttpRequest
from unfold.sites import UnfoldAdminSite


class PlatformAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold ships no types
    """Django's admin in unfold's clothes."""

    def has_permission(self, request: HttpRequest) -> bool:
        """Let active staff in; a tenant's admin is not one."""
        user = request.user
        return bool(user.is_active and getattr(user, "is_staff", False))
