"""Staff of the platform in the admin."""

import io

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from accounts.models import User
from platform_site.staff.login import PROVEN, PROVEN_AT
from tests.cast import PASSWORD, member, organization
from tests.twofactor.holder import with_totp

EMAIL = "root@example.com"


def create_staff(monkeypatch: pytest.MonkeyPatch, email: str, password: str = PASSWORD) -> None:
    """Create a member of staff as an operator does."""
    monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
    call_command("createstaff", email, stdout=io.StringIO())


def enter(client: Client, code: str, password: str = PASSWORD) -> int:
    """Try to sign in to the admin; return the status."""
    form = {"username": EMAIL, "password": password, "code": code}
    return client.post("/admin/login/?next=/admin/", form).status_code


def staff_client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a client that is signed in to the admin."""
    create_staff(monkeypatch, EMAIL)
    holder = with_totp(User.objects.get(email=EMAIL))
    client = Client()
    assert enter(client, holder.code()) == 302
    return client


def staff_inside(email: str = EMAIL) -> Client:
    """Return a client with a new member of staff's session, without a sign-in."""
    user = member(organization("Staff"), email)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client = Client()
    client.force_login(user)
    session = client.session
    session[PROVEN] = str(user.pk)
    session[PROVEN_AT] = int(timezone.now().timestamp())
    session.save()
    return client
