"""``manage.py createstaff --remove``: a user who was staff keeps the account alone."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from audit.models import AuditEvent
from tests.staff import EMAIL, staff_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a client of a member of staff, who is signed in to the admin."""
    return staff_client(monkeypatch)


def remove(email: str = EMAIL) -> None:
    call_command("createstaff", email, "--remove", stdout=io.StringIO())


def test_an_open_session_in_the_admin_ends(inside: Client) -> None:
    assert inside.get("/admin/").status_code == 200
    remove()
    assert inside.get("/admin/").status_code == 302
    user = User.objects.get(email=EMAIL)
    assert user.is_active
    assert not user.is_staff
    (event,) = AuditEvent.objects.filter(tag="cli:staff:delete")
    assert (event.actor_id, event.organization_id) == (user.pk, user.organization_id)


@pytest.mark.parametrize("email", ["alice@example.com", "nobody@example.com"])
def test_a_user_who_is_not_staff_is_refused(alice: User, email: str) -> None:
    with pytest.raises(CommandError, match="is not a member of staff"):
        remove(email)
