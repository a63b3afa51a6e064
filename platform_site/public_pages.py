"""The pages outside of console and admin: landing page, a developer's inbox."""

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
    """Show what runs here, with links."""
    return render_page("landing.html")


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Show the developer the messages that were printed instead of sent; 404 to anybody else.

    They hold codes and links that sign in, so production never has the page, and another machine
    never sees it.
    """
    if settings.IS_PRODUCTION or not is_from_this_machine(request):
        return problems.respond(request, NotFound())
    response = render_page("inbox.html", messages=kept.messages())
    response["Cache-Control"] = "no-store"
    return response
