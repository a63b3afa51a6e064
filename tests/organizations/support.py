"""Inviting, and what arrives in the mailbox; deletions that are due."""

from datetime import datetime
from typing import Any

import time_machine
from django.db.models import ForeignObjectRel

from accounts.models import User
from environments.models import Organization
from organizations import tasks
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller, signed_in

PATH = "/v1/invitations"
DORA = "dora@example.com"


def invite(by: User, email: str = DORA, *, roles: Any = ("reader",), **more: Any) -> Answer:
    """Invite an address."""
    return signed_in(by).post(PATH, {"email": email, "roles": list(roles), **more})


def mailed_token(to: str = DORA) -> str:
    """Return the token that was mailed to an address last."""
    mails = [mail for mail in inbox.messages("mail", "invitation") if mail["to"] == to]
    return inbox.secret_of(mails[-1])


def invited(by: User, email: str = DORA, **more: Any) -> str:
    """Invite an address; give the token in its mailbox."""
    answer = invite(by, email, **more)
    assert answer.status == 202, answer.body
    return mailed_token(email)


def accept(token: str, password: str = PASSWORD) -> Answer:
    """Accept an invitation."""
    return Caller().post(f"{PATH}/accept", {"token": token, "password": password})


def preview(token: str) -> Answer:
    """Preview an invitation."""
    return Caller().post(f"{PATH}/preview", {"token": token})


def owned() -> list[tuple[Any, str]]:
    """Return every model that refers to an organization, with the referring field."""
    fields = Organization._meta.get_fields(include_hidden=True)
    relations = [each for each in fields if isinstance(each, ForeignObjectRel)]
    return [(each.related_model, each.field.name) for each in relations]


def is_deleted(organization_id: int, *, at: datetime) -> bool:
    """Run the job that deletes an organization; return whether it did."""
    with time_machine.travel(at):
        tasks.delete_organization(organization_id)
    return Organization.objects.get(pk=organization_id).deleted_at is not None
