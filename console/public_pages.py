"""The pages outside console and admin: landing page, inbox of development, unknown paths."""

from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import Resolver404, resolve
from django.utils.encoding import escape_uri_path
from django.views.decorators.http import require_safe

from common import problems
from common.errors import NotFound
from common.web.addresses import is_from_this_machine
from console import views
from outbox.messages import development

CONSOLE: Final = "/console/"
# Not the API: a client of it must not depend on redirects, and a redirected POST loses its body.
# Not the paths of probes: load balancers take a redirect for health.
PAGES: Final = ("/admin/", CONSOLE, "/inbox/", "/v1/docs/", "/v1/schema/")


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """Show the landing page, with links."""
    return views.render_page("landing.html")


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Show the developer the messages that were printed instead of sent; 404 for others.

    They contain codes and links to sign in with, so the page does not exist in production, and is
    shown on this machine only.
    """
    if settings.IS_PRODUCTION or not is_from_this_machine(request):
        return problems.respond(request, NotFound())
    response = views.render_page("inbox.html", messages=development.messages())
    response["Cache-Control"] = "no-store"
    return response


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown path (Django's handler404).

    A GET or HEAD of a page's path with a slash too many or too few at its end is redirected to the
    page. Temporarily: browsers keep a permanent redirect, and a setting can add or remove the page.
    """
    page = _page_meant_by(request.path_info) if request.method in {"GET", "HEAD"} else None
    if page is not None:
        query = request.META.get("QUERY_STRING", "")
        return HttpResponseRedirect(escape_uri_path(page) + (f"?{query}" if query else ""))
    if request.path_info.startswith(CONSOLE):
        return views.missing()
    return problems.not_found(request, exception)


def _page_meant_by(path: str) -> str | None:
    """Return the path of a page that differs only in the slash at its end; None without one."""
    # They begin with a fixed name, so no path leads to another server ("//evil.example/").
    if not f"{path}/".startswith(PAGES) or _is_page(path):
        return None
    other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    return other if _is_page(other) else None


def _is_page(path: str) -> bool:
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    # False for the admin's view of all other paths (django.views.decorators.common).
    return getattr(view, "should_append_slash", True)
