"""Strict reading of cookies that an attacker must not be able to set."""

from django.http import HttpRequest


def sent(request: HttpRequest, name: str) -> str:
    """Return a cookie's value; '' without one, or if two cookies of the name differ.

    The header is parsed here, because Django strips Unicode blanks from names: a subdomain can set
    a cookie whose name is a blank and ``__Host-…``.
    """
    found = set()
    for part in str(request.META.get("HTTP_COOKIE", "")).split(";"):
        key, _, value = part.strip(" \t").partition("=")
        if key == name:
            found.add(value)
    return found.pop() if len(found) == 1 else ""
