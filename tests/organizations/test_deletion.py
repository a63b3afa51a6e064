"""An organization is deleted after a delay, in which any admin can cancel."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import time_machine
from django.core import mail
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from billing import ledger
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.money import UCR_PER_CENT
from environments.models import Environment, Organization
from organizations import tasks
from outbox.models import Delivery
from sqlgateway.models import Database
from tests.cast import PASSWORD, Caller, signed_in
from tests.commands import refused
from tests.organizations.support import is_deleted, owned
from tests.outbox.messages.support import run

pytestmark = pytest.mark.django_db
PATH = "/v1/organization/deletion"
WEEK = timedelta(days=7)


@pytest.fixture(autouse=True)
def _without_a_brain(settings: Settings) -> None:
    settings.CACHE = replace(settings.CACHE, is_enabled=False)


def name_of(user: User) -> str:
    """Return what the user's organization is called."""
    return str(Organization.objects.get(pk=user.organization_id).name)


def asked(user: User) -> Organization:
    """Have the user request the deletion of its organization."""
    answer = signed_in(user).post(PATH, {"name": name_of(user)})
    assert answer.status == 201, answer.body
    return Organization.objects.get(pk=user.organization_id)


def due(at: datetime) -> list[int]:
    """Run the hour's job; return the organizations whose deletion is queued."""
    with time_machine.travel(at):
        tasks.delete_due(0)
    jobs = ProcrastinateJob.objects.filter(task_name="organizations.tasks.delete_organization")
    return [job.args["organization_id"] for job in jobs]


def earn(user: User, cents: int) -> None:
    """Give the user's organization earnings that can be paid out."""
    amount = cents * UCR_PER_CENT
    ledger.post(
        Journal.Kind.SETTLEMENT,
        "earned",
        [
            Posting(AccountKind.PAYABLE, user.organization_id, amount),
            Posting(AccountKind.GRANTS, None, -amount),
        ],
    )


def test_an_admin_requests_it_and_every_admin_gets_a_mail(alice: User, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(roles=["admin"])
    before = timezone.now()
    row = asked(alice)
    assert row.deletion_due_at is not None
    assert before + WEEK <= row.deletion_due_at <= timezone.now() + WEEK
    seen = signed_in(bob).get("/v1/organization").body
    assert seen["deletion_requested_by"] == alice.email
    assert seen["deletion_due_at"] is not None
    mails = Delivery.objects.filter(organization_id=alice.organization_id)
    assert mails.count() == 2
    event = AuditEvent.objects.get(tag="api:organization:delete")
    assert event.actor_id == alice.pk


@pytest.mark.parametrize("name", ["", "Alices", "alice's", "x" * 201])
def test_the_name_has_to_be_typed(alice: User, name: str) -> None:
    answer = signed_in(alice).post(PATH, {"name": name})
    assert answer.status == 400
    assert answer.code == ("name_mismatch" if name.startswith(("A", "a")) else "invalid_request")
    assert [wrong["field"] for wrong in answer.body["errors"]] == ["name"]
    assert Organization.objects.get(pk=alice.organization_id).deletion_due_at is None


def test_only_admins_with_a_recent_proof_request_it(alice: User, bob: User) -> None:
    assert signed_in(bob).post(PATH, {"name": name_of(bob)}).code == "permission_denied"
    assert signed_in(bob).call("DELETE", PATH).code == "permission_denied"
    caller = signed_in(alice)
    earlier = timezone.now() - timedelta(hours=1)
    Session.objects.update(auth_time=earlier)
    assert caller.post(PATH, {"name": name_of(alice)}).code == "step_up_required"


def test_any_admin_cancels_it_without_a_new_proof(alice: User, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(roles=["admin"])
    asked(alice)
    caller = signed_in(bob)
    earlier = timezone.now() - timedelta(hours=1)
    Session.objects.update(auth_time=earlier)
    assert caller.call("DELETE", PATH).body["deletion_due_at"] is None
    assert caller.call("DELETE", PATH).code == "deletion_not_found"
    assert not is_deleted(alice.organization_id, at=timezone.now() + 2 * WEEK)
    assert signed_in(alice).get("/v1/whoami").status == 200


def test_it_is_requested_once_and_few_times_a_day(alice: User) -> None:
    caller, name = signed_in(alice), name_of(alice)
    asked(alice)
    assert caller.post(PATH, {"name": name}).code == "deletion_requested"
    codes = [caller.post(PATH, {"name": name}).code for _ in range(4)]
    assert codes[-1] == "requested_too_often"


def test_before_it_is_due_nothing_happens(alice: User) -> None:
    row = asked(alice)
    assert row.deletion_due_at is not None
    early = row.deletion_due_at - timedelta(seconds=1)
    assert due(early) == []
    assert not is_deleted(row.pk, at=early)
    assert signed_in(alice).get("/v1/whoami").status == 200


def test_then_everything_goes_but_the_ledger_and_the_trail(
    alice: User, bob: User, charlie: User
) -> None:
    caller, member = signed_in(alice), signed_in(bob)
    invitation = {"email": "dora@example.com", "roles": ["reader"]}
    assert caller.post("/v1/invitations", invitation).status == 202
    assert caller.post("/v1/domains", {"domain": "alice.example"}).status == 201
    earn(alice, 4)
    asked(alice)
    due_at = timezone.now() + WEEK + timedelta(minutes=1)
    organization_id = alice.organization_id
    assert due(due_at) == [organization_id]
    assert is_deleted(organization_id, at=due_at)
    assert caller.get("/v1/whoami").status == 401
    assert member.get("/v1/whoami").status == 401
    login = {"email": alice.email, "password": PASSWORD}
    assert Caller().post("/v1/auth/login", login).code == "invalid_credentials"
    row = Organization.objects.get(pk=organization_id)
    assert (row.name, row.deletion_requested_by) == ("", "")
    assert row.deleted_at is not None
    for model, field in owned():
        if model is not Delivery:
            assert not model._meta.base_manager.filter(**{field: row}).exists(), model
    assert ledger.balance(AccountKind.PAYABLE, organization_id) == 4 * UCR_PER_CENT
    assert AuditEvent.objects.filter(
        organization_id=organization_id, tag="system:organization:delete"
    ).exists()
    assert signed_in(charlie).get("/v1/whoami").status == 200


def test_the_address_can_sign_up_again(alice: User) -> None:
    asked(alice)
    assert is_deleted(alice.organization_id, at=timezone.now() + 2 * WEEK)
    again = {"email": alice.email, "password": PASSWORD}
    answer = Caller().post("/v1/auth/signup", again)
    assert answer.status == 201
    whoami = Caller(answer.body["access_token"]).get("/v1/whoami").body
    assert whoami["org_id"] != alice.organization_id


def test_once_begun_it_cannot_be_cancelled_and_goes_on_where_it_failed(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(alice)
    due_at = timezone.now() + 2 * WEEK
    dropped: list[int] = []

    def fail(environment_pk: int) -> None:
        dropped.append(environment_pk)
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr("environments.environments.drop", fail)
        with pytest.raises(ConnectionError):
            is_deleted(alice.organization_id, at=due_at)
    assert len(dropped) == 1
    _, error = refused("deleteorganization", str(alice.organization_id), "--cancel")
    assert error["code"] == "deletion_began"
    assert is_deleted(alice.organization_id, at=due_at)
    assert not Environment.objects.filter(organization_id=alice.organization_id).exists()
    assert not Database.objects.filter(organization_id=alice.organization_id).exists()


def test_earnings_that_are_owed_block_it_with_a_sentence(alice: User, settings: Settings) -> None:
    earn(alice, settings.BILLING.payout_minimum_cents)
    answer = signed_in(alice).post(PATH, {"name": name_of(alice)})
    assert answer.code == "deletion_blocked"
    assert "owed to the organization" in answer.body["detail"]


def test_what_is_earned_during_the_delay_blocks_it_too(alice: User, settings: Settings) -> None:
    asked(alice)
    earn(alice, settings.BILLING.payout_minimum_cents)
    assert not is_deleted(alice.organization_id, at=timezone.now() + 2 * WEEK)
    assert signed_in(alice).get("/v1/whoami").status == 200


def test_the_last_mail_arrives_although_its_reader_is_gone(alice: User) -> None:
    asked(alice)
    assert is_deleted(alice.organization_id, at=timezone.now() + 2 * WEEK)
    for delivery in Delivery.objects.filter(template="organization_deleted"):
        assert run(delivery).state == Delivery.State.SENT
    subjects = [sent.subject for sent in mail.outbox]
    assert any("is deleted" in subject for subject in subjects)
