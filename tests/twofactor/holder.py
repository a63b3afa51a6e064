"""A person with an authenticator app: an independent implementation of TOTP (pyotp)."""

from dataclasses import dataclass, field

import pyotp
from django.utils import timezone

from accounts.models import User
from tests.cast import PASSWORD, Answer, Caller, signed_in
from twofactor.models import Factor

LOGIN = "/v1/auth/login"
CHALLENGE = "/v1/auth/2fa/challenge"


@dataclass
class Holder:
    """A user with TOTP active; ``caller`` is the session it was set up in."""

    user: User
    caller: Caller
    seed: str
    backup_codes: list[str] = field(default_factory=list)

    def code(self, *, steps: int = 0) -> str:
        """Return the app's code, this many 30-second steps from now."""
        return pyotp.TOTP(self.seed).at(timezone.now(), counter_offset=steps)

    def wrong_code(self) -> str:
        """Return a well-formed wrong code."""
        near = {self.code(steps=step) for step in range(-2, 3)}
        return next(f"{n:06d}" for n in range(10) if f"{n:06d}" not in near)


def set_up(caller: Caller) -> Answer:
    """Begin to set up TOTP."""
    return caller.post("/v1/auth/2fa/totp/setup", {"issuer": "Zonal", "account_name": "alice"})


def as_typed(code: str) -> str:
    """Return a code as telephones, mail programs and people write it.

    In small letters, with look-alikes, in groups of three with every sort of blank and dash between
    them, and between marks of the writing direction.
    """
    plain = code.replace("-", "").lower().replace("0", "o").replace("1", "l")
    groups = [plain[at : at + 3] for at in range(0, len(plain), 3)]
    between = ["\u00a0", "\u2011", "\u2013 ", "\u2212", " \t", "\u202f", "\u200b", "-", "\u00ad"]
    spelled = "".join(group + mark for group, mark in zip(groups, between, strict=False))
    return f"\u202a{spelled}\u202c"


def with_totp(user: User, *, environment: str = "live") -> Holder:
    """Set TOTP up through the API, as the app would."""
    caller = signed_in(user, environment)
    begun = set_up(caller).body
    holder = Holder(user, caller, begun["secret"])
    body = {"secret_id": begun["secret_id"], "code": holder.code()}
    answer = caller.post("/v1/auth/2fa/totp/verify", body)
    assert answer.status == 200, answer.body
    # The present code was used up by this; the tests begin with it unused.
    Factor.objects.filter(user=user, method="totp").update(last_step=0)
    holder.backup_codes = answer.body["backup_codes"]
    return holder


def log_in(email: str = "alice@example.com", password: str = PASSWORD, **headers: str) -> Answer:
    """Log in with the password."""
    return Caller().post(LOGIN, {"email": email, "password": password}, **headers)


def pending(answer: Answer) -> Caller:
    """Return the caller that holds a login's mfa_token."""
    assert answer.status in {200, 201}, answer.body
    return Caller(answer.body["mfa_token"])


def ask(caller: Caller, method: str = "") -> Answer:
    """Ask for a challenge."""
    return caller.get(f"{CHALLENGE}?method={method}" if method else CHALLENGE)


def reply(challenge: Answer, code: str, **more: object) -> Answer:
    """Answer a challenge, without a header."""
    path = f"{CHALLENGE}/{challenge.body['challenge_id']}/verify"
    return Caller().post(path, {"code": code, **more})
