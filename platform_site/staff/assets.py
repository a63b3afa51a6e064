"""The admin's own files beside unfold's (settings.UNFOLD)."""

from django.http import HttpRequest
from django.templatetags.static import static


def style(_request: HttpRequest) -> str:
    """Return the path of the style sheet."""
    return static("staff/admin.css")


def landmarks(_request: HttpRequest) -> str:
    """Return the path of the script that names the parts of a page."""
    return static("staff/landmarks.js")
