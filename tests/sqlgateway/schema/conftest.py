"""An organization's members, with the whole platform in front of their database."""

from collections.abc import Callable

import pytest

from environments.models import Organization
from tests import cast
from tests.cast import Caller


@pytest.fixture
def organization(databases: None) -> Organization:
    """Return an organization whose databases are dropped after the test."""
    return cast.organization()


@pytest.fixture
def signed_in_as(organization: Organization) -> Callable[[str], Caller]:
    """Return a function that signs a new member in with a role."""

    def sign_in(role: str) -> Caller:
        return cast.signed_in(cast.member(organization, f"{role}@example.com", role=role))

    return sign_in
