"""Which browser a visit belongs to: a random cookie, whose digest the visit keeps.

One cookie a browser serves all of its visits, so that two tabs do not take each other's away.
"""

import re
from typing import Final, Literal

from django.http import HttpRequest, HttpResponse

from accounts.oauth.secrets import new_secret
from platform_site.lib import cookies

LIFE_S: Final = 600
# A form that another site sends brings cookies only where they are meant for other sites.
NAMES: Final[dict[bool, str]] = {False: "__Host-zonal-visit", True: "__Host-zonal-visit-post"}
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def of(request: HttpRequest, *, by_post: bool) -> str:
    """Give the browser's secret, '' where it has none.

    by_post: the return comes as a form from the provider's page.
    """
    value = cookies.sent(request, NAMES[by_post])
    return value if _SECRET.fullmatch(value) else ""


def secret_for(request: HttpRequest, *, by_post: bool) -> str:
    """Give the browser's secret, or a new one."""
    return of(request, by_post=by_post) or new_secret()


def put(response: HttpResponse, secret: str, *, by_post: bool) -> None:
    """Have the browser keep its secret for as long as a visit may last."""
    same_site: Literal["Lax", "None"] = "None" if by_post else "Lax"
    response.set_cookie(
        NAMES[by_post],
        secret,
        max_age=LIFE_S,
        path="/",
        secure=True,
        httponly=True,
        samesite=same_site,
    )
