"""What every test may ask for."""

import pytest

from accounts.models import User
from environments.models import Organization
from tests import cast


@pytest.fixture
def anyone() -> cast.Caller:
    """Give a caller without a token."""
    return cast.Caller()


@pytest.fixture
def home(db: None) -> Organization:
    """Give Alice's organization."""
    return cast.organization()


@pytest.fixture
def alice(home: Organization) -> User:
    """Give the owner."""
    return cast.member(home, "alice@example.com")


@pytest.fixture
def bob(home: Organization) -> User:
    """Give a reader in Alice's organization."""
    return cast.member(home, "bob@example.com", role="reader")


@pytest.fixture
def charlie(db: None) -> User:
    """Give the owner of another organization."""
    return cast.member(cast.organization("Charlie's"), "charlie@example.org")
