"""Setting up the factor that the policy requires, as the last step of a login."""

import pyotp

from accounts.models import User
from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests.cast import PASSWORD, Answer, Caller, member
from tests.sign_in_methods.driver import EMAIL, Driver
from tests.twofactor.holder import log_in, set_up


class Enrolment(Driver):
    sign_in_method = SignInMethod.ENROLMENT
    method = "totp"

    def prepare(self, home: Organization) -> User:
        home.mfa_required, home.mfa_grace_period_days = True, 0
        home.save()
        return member(home, EMAIL, password=PASSWORD)

    def come_in(self) -> Answer:
        return self._set_up(is_right=True)

    def fail(self) -> Answer:
        return self._set_up(is_right=False)

    def _set_up(self, *, is_right: bool) -> Answer:
        login = log_in(EMAIL)
        if "mfa_token" not in login.body:
            return login
        caller = Caller(login.body["mfa_token"])
        begun = set_up(caller)
        if begun.status != 200:
            return begun
        code = pyotp.TOTP(begun.body["secret"]).now()
        if not is_right:
            code = f"{(int(code) + 1) % 10**6:06d}"
        body = {"secret_id": begun.body["secret_id"], "code": code}
        return caller.post("/v1/auth/2fa/totp/verify", body)


DRIVER = Enrolment()
