"""The admin beside a brain, and a member of staff in it."""

import pytest
from django.test import Client

from tests.edgecache.api.conftest import over_a_brain
from tests.platform_site.console.conftest import chromium, site, visit, visitor
from tests.staff import staff_inside

__all__ = ["chromium", "over_a_brain", "site", "visit", "visitor"]


@pytest.fixture
def inside(db: None) -> Client:
    """Return the browser of a member of staff."""
    return staff_inside()
