"""A visitor on the Tables page."""

from collections.abc import Callable

import pytest

from tests.console.browser import Visitor
from tests.console.data.tables_page import TABLES, elsewhere
from tests.console.journeys import sign_up
from tests.console.layout import SIZES


@pytest.fixture
def tables(visit: Callable[..., Visitor], request: pytest.FixtureRequest) -> Visitor:
    """Return a visitor of an environment with tables, before the first page."""
    size = SIZES[getattr(request, "param", "wide")]
    visitor = visit(**size, permissions=["clipboard-read", "clipboard-write"])
    sign_up(visitor)
    elsewhere(visitor, TABLES)
    return visitor
