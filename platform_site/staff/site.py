"""The admin site: for platform staff with a second factor."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse
from unfold.sites import UnfoldAdminSite

from common.scoping import unscoped
from platform_site.staff import passkeys
from platform_site.staff.login import StaffLoginForm, is_proven, is_recent, require_recent

STAFF: Final = "staff act on every organization"
# Unfold's pages have no inline script, but Alpine evaluates their attributes, and theme colors
# are an inline style sheet.
CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)


class PlatformAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold ships no types
    """Django's admin with unfold's templates and a Content-Security-Policy on every page."""

    login_form = StaffLoginForm
    login_template = "admin/staff_login.html"
    index_title = "Dashboard"
    index_template = "admin/dashboard.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """True if the user is active staff and has proven the second factor in this session."""
        user = request.user
        return bool(user.is_active and getattr(user, "is_staff", False) and is_proven(request))

    def has_recent_proof(self, request: HttpRequest) -> bool:
        """True if an action needs no further proof of the second factor."""
        return is_recent(request)

    def require_recent_proof(self, request: HttpRequest) -> None:
        """Require a recent proof of the second factor, or one in the form.

        Raises ValidationError.
        """
        require_recent(request)

    def get_urls(self) -> list[Any]:
        """Return the URLs, including pages that are not lists of models."""
        pages: list[Any] = []
        if settings.HAS_CACHE:
            from edgecache import staff_pages  # noqa: PLC0415 - only with the feature

            pages = staff_pages.urls(self)
        return [*passkeys.urls(), *pages, *super().get_urls()]

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Show the login page, or sign in."""
        with unscoped(STAFF):
            return _answer(super().login(request, extra_context))

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the console.

        Django's page would set a password of one letter, end no session, mail no notice, and check
        the present password as often as somebody guesses it.
        """
        return HttpResponseRedirect("/console/security")

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """Return a view behind the permission check."""
        checked = super().admin_view(view, cacheable)

        @wraps(checked)
        @unscoped(STAFF)
        def answer(*args: Any, **kwargs: Any) -> Any:
            return _answer(checked(*args, **kwargs))

        return answer


def _answer(response: HttpResponse) -> HttpResponse:
    """Return a page with its policy, rendered: later its queries would be outside of the scope."""
    if isinstance(response, SimpleTemplateResponse):
        response.render()
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response
