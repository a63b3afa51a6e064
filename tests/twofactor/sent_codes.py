"""Factors by text message and e-mail, set up as a user does."""

from typing import Any

from accounts.models import User
from tests import inbox
from tests.cast import Answer, Caller, signed_in

NUMBER = "+49 151 23456789"


def set_up(caller: Caller, method: str) -> Answer:
    body: dict[str, Any] = {"phone_number": NUMBER} if method == "sms" else {}
    return caller.post(f"/v1/auth/2fa/{method}/setup", body)


def sent_code(method: str) -> str:
    return inbox.sms_code() if method == "sms" else inbox.email_code()


def verify(caller: Caller, method: str, begun: Answer, code: str) -> Answer:
    body = {"verification_id": begun.body["verification_id"], "code": code}
    return caller.post(f"/v1/auth/2fa/{method}/verify", body)


def enrolled(user: User, method: str) -> Caller:
    caller = signed_in(user)
    begun = set_up(caller, method)
    assert begun.status == 200, begun.body
    assert verify(caller, method, begun, sent_code(method)).status == 200
    return caller
