"""The pages outside console and admin: landing page, and inbox of development."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.delivery import inbox as kept
from platform_site.console.views import render_page
from platform_site.lib import problems
from platform_site.lib.errors import NotFound
from platform_site.lib.web.addresses import is_from_this_machine


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """Show the landing page, with links."""
    return render_page("landing.html")


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Show the developer the messages that were printed instead of sent; 404 for others.

    They contain codes and links to sign in with, so the page does not exist in production, and is
    shown on this machine only.
    """
    if settings.IS_PRODUCTION or not is_from_this_machine(request):
        return problems.respond(request, NotFound())
    response = render_page("inbox.html", messages=kept.messages())
    response["Cache-Control"] = "no-store"
    return response
