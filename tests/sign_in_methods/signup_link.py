"""Signing up with a mailed link."""

from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller
from tests.sign_in_methods.driver import EMAIL, Driver


class SignupLink(Driver):
    sign_in_method = SignInMethod.SIGNUP_LINK
    makes_account = True
    makes_organization = True

    def prepare(self, home: Organization) -> None:
        assert Caller().post("/v1/auth/signup/link", {"email": EMAIL}).status == 202

    def come_in(self) -> Answer:
        token = inbox.secret_of(inbox.messages("mail", "signup_link")[-1])
        return Caller().post("/v1/auth/signup/complete", {"token": token, "password": PASSWORD})

    def fail(self) -> Answer:
        body = {"token": "not my token", "password": PASSWORD}
        return Caller().post("/v1/auth/signup/complete", body)


DRIVER = SignupLink()
