"""Signing up: an organization of one's own."""

from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests.cast import PASSWORD, Answer, Caller
from tests.sign_in_methods.driver import EMAIL, Driver


class Signup(Driver):
    sign_in_method = SignInMethod.SIGNUP
    makes_account = True
    makes_organization = True

    def prepare(self, home: Organization) -> None:
        return None

    def come_in(self) -> Answer:
        return Caller().post("/v1/auth/signup", {"email": EMAIL, "password": PASSWORD})

    def fail(self) -> Answer:
        return Caller().post("/v1/auth/signup", {"email": EMAIL, "password": "password"})


DRIVER = Signup()
