"""A passkey alone, with user verification."""

from accounts.models import User
from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests.cast import Answer, member
from tests.sign_in_methods.driver import EMAIL, Driver
from tests.twofactor.webauthn.authenticator import Authenticator, Lies
from tests.twofactor.webauthn.holder import sign_in, with_passkey


class Passkey(Driver):
    sign_in_method = SignInMethod.PASSKEY
    method = "webauthn"
    key: Authenticator

    def prepare(self, home: Organization) -> User:
        holder = with_passkey(member(home, EMAIL), Authenticator(origin="http://localhost:8000"))
        self.key = holder.key
        return holder.user

    def come_in(self) -> Answer:
        return sign_in(self.key)

    def fail(self) -> Answer:
        return sign_in(self.key, Lies(signature=b"forged"))


DRIVER = Passkey()
