"""``manage.py deleteorganization``."""

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from psycopg import sql
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from billing.tenant_data import BillingData
from common import locks
from environments.models import Environment, Organization
from outbox.models import Delivery
from sqlgateway.clusters import servers
from sqlgateway.models import Database, RetiredDatabase
from tests.cast import signed_in
from tests.organizations.support import owned
from tests.platform_site.staff import rows

pytestmark = pytest.mark.django_db(transaction=True)
# A port on which nothing listens.
NOWHERE = "http://127.0.0.1:9"


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
    assert not User.objects.filter(pk=alice.pk).exists()
    assert AuditEvent.objects.filter(tag="cli:organization:delete").count() == 3
    with pytest.raises(CommandError):
        call_command("deleteorganization", "0", "--cancel")


def rows_of_every_kind(user: User) -> None:
    """Give the user's organization a database, and a row in every table that refers to it."""
    assert signed_in(user).post("/v1/sql", {"query": "CREATE TABLE lakes (id int)"}).status == 200
    organization = Organization.objects.get(pk=user.organization_id)
    live = Environment.objects.get(organization=organization, slug="live")
    owners: dict[Any, Any] = {Organization: organization, Environment: live, User: user}
    for model, _ in owned():
        # Those with a database behind them are made by the platform.
        if model not in {User, Environment, Database, RetiredDatabase}:
            rows.add(model, 1, owners=owners)


def test_what_is_away_ends_it_with_a_sentence_and_the_same_command_goes_on(
    alice: User, settings: Settings
) -> None:
    rows_of_every_kind(alice)
    number, name = str(alice.organization_id), "Alice's"
    cache = settings.CACHE
    settings.CACHE = replace(cache, is_enabled=True, brain_url=NOWHERE)
    for _ in range(2):
        with pytest.raises(CommandError, match=r"has begun .* edge cache .* repeat") as ended:
            call_command("deleteorganization", number, "--name", name, "--at-once")
        assert ended.value.returncode == 4
    row = Organization.objects.get(pk=alice.organization_id)
    assert (row.deletion_began_at is not None, row.deleted_at) == (True, None)
    settings.CACHE = cache
    for _ in range(2):
        assert said(number, "--name", name, "--at-once")["deleted_at"] is not None
    for model, field in owned():
        if model is not Delivery:
            assert not model._meta.base_manager.filter(**{field: row}).exists(), model


def test_a_deletion_that_a_database_server_refuses_goes_on_too(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of_every_kind(alice)
    arguments = [str(alice.organization_id), "--name", "Alice's", "--at-once"]
    database = Database.objects.get(organization_id=alice.organization_id)
    # DROP ROLE is refused while another database has something of the role's.
    with servers.administer(servers.address_of(database.cluster)) as server:
        owner = sql.Identifier(database.admin_role)
        server.execute(sql.SQL("CREATE DATABASE kept_open OWNER {}").format(owner))
        with pytest.raises(CommandError, match="A database server refused a step") as ended:
            call_command("deleteorganization", *arguments)
        assert ended.value.returncode == 4
        server.execute("DROP DATABASE kept_open")
    assert said(*arguments)["deleted_at"] is not None


def test_two_processes_do_not_delete_the_same_organization(alice: User) -> None:
    arguments = [str(alice.organization_id), "--name", "Alice's", "--at-once"]
    with (
        locks.exclusive(f"organization deletion {alice.organization_id}"),
        pytest.raises(CommandError, match="Another process"),
    ):
        call_command("deleteorganization", *arguments)
    assert said(*arguments)["deleted_at"] is not None


def test_a_waiting_deletion_is_carried_out_immediately_if_nothing_blocks_it(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [str(alice.organization_id), "--name", "Alice's"]
    assert said(*arguments)["deleted_at"] is None
    with monkeypatch.context() as patch:
        patch.setattr(BillingData, "obstacles_of", lambda *_: ["Pay first."])
        with pytest.raises(CommandError, match=r"cannot be deleted yet\. Pay first\."):
            call_command("deleteorganization", *arguments, "--at-once")
    assert said(*arguments, "--at-once")["deleted_at"] is not None
