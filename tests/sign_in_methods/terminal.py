"""A program in a terminal, allowed in the browser of a user with a second factor."""

import base64
import hashlib

from accounts.models import User
from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests.cast import Answer, Caller, member
from tests.sign_in_methods.driver import EMAIL, Driver
from tests.twofactor.holder import Holder, with_totp

PATH = "/v1/auth/terminal"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).decode().rstrip("=")


def start(**more: object) -> Answer:
    """Ask, as a program does."""
    return Caller().post(PATH, {"code_challenge": challenge_of(VERIFIER), "host": "laptop", **more})


def allow(caller: Caller, started: Answer) -> Answer:
    """Allow a request in a caller's name."""
    assert started.status == 201, started.body
    return caller.post(f"{PATH}/{started.body['request_id']}/allow")


def exchange(allowed: Answer, verifier: str = VERIFIER) -> Answer:
    """Exchange the code, as the program does."""
    body = {"code": allowed.body["code"], "code_verifier": verifier}
    return Caller().post(f"{PATH}/token", body)


class Terminal(Driver):
    sign_in_method = SignInMethod.TERMINAL
    method = "totp"
    holder: Holder

    def prepare(self, home: Organization) -> User:
        self.holder = with_totp(member(home, EMAIL))
        return self.holder.user

    def come_in(self) -> Answer:
        allowed = allow(self.holder.caller, start())
        return exchange(allowed) if allowed.status == 200 else allowed

    def fail(self) -> Answer:
        return exchange(allow(self.holder.caller, start()), VERIFIER[::-1])


DRIVER = Terminal()
