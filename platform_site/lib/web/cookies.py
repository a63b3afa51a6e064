"""Cookies as the browser sent them, for those that an attacker must not be able to plant."""

from django.http import HttpRequest


def sent(request: HttpRequest, name: str) -> str:
    """Return a cookie's value; '' without one, or if two cookies of the name differ.

    The header is read here and not by Django, which strips Unicode blanks off the names: a
    subdomain can plant a cookie whose name is a blank and ``__Host-…``.
    """
    found = set()
    for part in str(request.META.get("HTTP_COOKIE", "")).split(";"):
        key, _, value = part.strip(" \t").partition("=")
        if key == name:
            found.add(value)
    return found.pop() if len(found) == 1 else ""
