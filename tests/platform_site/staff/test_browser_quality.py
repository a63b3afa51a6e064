"""In a browser: the admin's pages are for everyone, on wide and on narrow screens."""

from collections.abc import Callable

import pytest

from accounts.models import User
from tests.platform_site.console.accessibility import violations
from tests.platform_site.console.browser import SCHEMES, Visitor
from tests.staff import EMAIL, staff_inside

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.mark.parametrize("width", [390, 1440])
def test_the_admin_is_readable_and_fits_the_screen(
    visit: Callable[..., Visitor], width: int
) -> None:
    cookie = staff_inside().cookies["sessionid"].value
    visitor = visit(viewport={"width": width, "height": 844})
    visitor.context.add_cookies([{"name": "sessionid", "value": cookie, "url": visitor.base}])
    user = User.unscoped.get(email=EMAIL)
    for path in ("", "accounts/user/", f"accounts/user/{user.pk}/change/"):
        for scheme in SCHEMES:
            visitor.page.emulate_media(color_scheme=scheme)
            visitor.page.goto(f"{visitor.base}/admin/{path}")
            assert violations(visitor.page) == [], f"{path}, {scheme}"
        assert not visitor.page.evaluate(SCROLLS), path
