"""The admin beside a brain, and a member of staff in it."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.console.browser import Visitor
from tests.console.conftest import chromium, site, visit, visitor
from tests.edgecache.api.conftest import over_a_brain
from tests.staff import staff_inside

__all__ = ["chromium", "over_a_brain", "site", "visit", "visitor"]


@pytest.fixture
def inside(db: None) -> Client:
    """Return the browser of a member of staff."""
    return staff_inside()


@pytest.fixture
def staff(visit: Callable[..., Visitor]) -> Visitor:
    """Return a member of staff in the admin."""
    cookie = staff_inside().cookies["sessionid"].value
    visitor = visit()
    visitor.context.add_cookies([{"name": "sessionid", "value": cookie, "url": visitor.base}])
    return visitor
