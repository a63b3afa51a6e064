"""``manage.py deleteorganization``."""

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from accounts.models import AuditEvent, User
from environments.models import Organization

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _without_a_brain(settings: Settings) -> None:
    settings.CACHE = replace(settings.CACHE, is_enabled=False)


def said(*arguments: str) -> Any:
    """Run the command and return its facts."""
    out = StringIO()
    call_command("deleteorganization", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_an_operator_requests_cancels_and_carries_out_a_deletion(alice: User) -> None:
    number = str(alice.organization_id)
    name = str(Organization.objects.get(pk=alice.organization_id).name)
    with pytest.raises(CommandError, match="not the organization's name"):
        call_command("deleteorganization", number, "--name", "x")
    assert said(number, "--name", name)["deletion_due_at"] is not None
    assert said(number, "--cancel")["deletion_due_at"] is None
    assert said(number, "--name", name, "--at-once")["deleted_at"] is not None
    assert not User.unscoped.filter(pk=alice.pk).exists()
    assert AuditEvent.objects.filter(tag="cli:organization:delete").count() == 3
    with pytest.raises(CommandError):
        call_command("deleteorganization", "0", "--cancel")
