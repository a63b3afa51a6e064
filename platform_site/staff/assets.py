"""Static files of the admin in addition to unfold's (settings.UNFOLD)."""

from django.http import HttpRequest
from django.templatetags.static import static


def style(_request: HttpRequest) -> str:
    """Return the path of the style sheet."""
    return static("staff/admin.css")


def landmarks(_request: HttpRequest) -> str:
    """Return the path of the script that adds landmark roles to a page."""
    return static("staff/landmarks.js")


def restored(_request: HttpRequest) -> str:
    """Return the path of the console's script that reloads a page restored by Back."""
    return static("console/frame/restored.js")
