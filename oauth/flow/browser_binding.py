"""The binding of a transaction to one browser: a random cookie, of which the row stores a digest.

It prevents login CSRF: a callback is refused in a browser that did not start the transaction. One
cookie serves all transactions of a browser, so that two tabs do not replace each other's.
"""

import re
from typing import Final, Literal

from django.http import HttpRequest, HttpResponse

from common.one_time_secrets import new_secret
from common.web import cookies

LIFETIME_S: Final = 600
# By form post or not. A form sent from another site brings only cookies with SameSite=None.
COOKIE_NAMES: Final[dict[bool, str]] = {
    False: "__Host-zonal-oauth",
    True: "__Host-zonal-oauth-post",
}
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def secret_of(request: HttpRequest, *, form_post: bool) -> str:
    """Return the browser's secret, '' if it has none.

    form_post: the callback is a form sent from the provider's page.
    """
    value = cookies.sent(request, COOKIE_NAMES[form_post])
    return value if _SECRET.fullmatch(value) else ""


def secret_for(request: HttpRequest, *, form_post: bool) -> str:
    """Return the browser's secret, or a new one."""
    return secret_of(request, form_post=form_post) or new_secret()


def set_cookie(response: HttpResponse, secret: str, *, form_post: bool) -> None:
    """Store the secret in the browser for as long as a transaction lives."""
    same_site: Literal["Lax", "None"] = "None" if form_post else "Lax"
    response.set_cookie(
        COOKIE_NAMES[form_post],
        secret,
        max_age=LIFETIME_S,
        path="/",
        secure=True,
        httponly=True,
        samesite=same_site,
    )
