"""Addresses to prove and to change, and what arrives in the mailboxes."""

from accounts.models import User
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller

PATH = "/v1/auth/email"
NEW = "alice@new.example"


def signed_up(email: str = "alice@example.com") -> Caller:
    """Sign up; the address is not proven yet."""
    answer = Caller().post("/v1/auth/signup", {"email": email, "password": PASSWORD})
    return Caller().holding(answer)


def user_of(email: str = "alice@example.com") -> User:
    """Return the user of an address."""
    found: User = User.objects.select_related("organization").get(email=email)
    return found


def mailed_code(to: str = "alice@example.com") -> str:
    """Return the code that was mailed to an address last."""
    mails = [mail for mail in inbox.messages("mail", "email_verification") if mail["to"] == to]
    return str(mails[-1]["context"]["code"])


def verify(caller: Caller, code: str) -> Answer:
    """Return a code."""
    return caller.post(f"{PATH}/verify", {"code": code})


def begin_change(caller: Caller, email: str = NEW) -> Answer:
    """Ask for another address."""
    return caller.post(f"{PATH}/change", {"email": email})


def cancel_token() -> str:
    """Return the token of the last notice of a change."""
    return inbox.secret_of(inbox.messages("mail", "email_change_started")[-1], "cancel_link")
