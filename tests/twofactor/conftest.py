"""Alice with a password and an authenticator app."""

import pytest

from accounts.models import User
from environments.models import Organization
from tests.cast import PASSWORD, member
from tests.twofactor.holder import Holder, with_totp


@pytest.fixture
def alice(home: Organization) -> User:
    return member(home, "alice@example.com", password=PASSWORD)


@pytest.fixture
def holder(alice: User) -> Holder:
    return with_totp(alice)
