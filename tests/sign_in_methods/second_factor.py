"""The second half of a login: the challenge of the factor that was due."""

from accounts.models import User
from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests.cast import PASSWORD, Answer, member
from tests.sign_in_methods.driver import EMAIL, Driver
from tests.twofactor.holder import Holder, ask, log_in, pending, reply, with_totp
from twofactor.models import Factor


class SecondFactor(Driver):
    sign_in_method = SignInMethod.SECOND_FACTOR
    method = "totp"
    holder: Holder

    def prepare(self, home: Organization) -> User:
        self.holder = with_totp(member(home, EMAIL, password=PASSWORD))
        return self.holder.user

    def come_in(self) -> Answer:
        return self._answer(self.holder.code())

    def fail(self) -> Answer:
        return self._answer(self.holder.wrong_code())

    def _answer(self, code: str) -> Answer:
        Factor.objects.filter(user=self.holder.user).update(last_step=0)
        login = log_in(EMAIL)
        challenge = ask(pending(login), "totp") if login.status == 200 else login
        return reply(challenge, code) if challenge.status == 200 else challenge


DRIVER = SecondFactor()
