"""Inviting, and what arrives in the mailbox."""

from typing import Any

from accounts.models import User
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
