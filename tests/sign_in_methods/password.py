"""E-mail and password."""

from accounts.models import User
from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests.cast import PASSWORD, Answer, member
from tests.sign_in_methods.driver import EMAIL, Driver
from tests.twofactor.holder import log_in


class Password(Driver):
    sign_in_method = SignInMethod.PASSWORD

    def prepare(self, home: Organization) -> User:
        return member(home, EMAIL, password=PASSWORD)

    def come_in(self) -> Answer:
        return log_in(EMAIL)

    def fail(self) -> Answer:
        return log_in(EMAIL, "not my password")


DRIVER = Password()
