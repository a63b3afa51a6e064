"""Sign-in with a password and a second factor."""

from collections.abc import Callable
from typing import Any, Optional
from urllib.parse import quote

from zonal._sync.transport import Call, Transport
from zonal.bodies import given
from zonal.decoding import decode
from zonal.errors import EnrolmentRequiredError, ProblemError, SecondFactorRequiredError
from zonal.types import Challenge, LoginAnswer

SecondFactor = Callable[[Challenge], str]
WRONG_CODE = frozenset({"invalid_code", "malformed_code"})


def sign_in(
    transport: Transport,
    email: str,
    password: str,
    *,
    environment: Optional[str] = None,
    second_factor: Optional[SecondFactor] = None,
    method: Optional[str] = None,
    attempts: int = 1,
) -> LoginAnswer:
    """Return the answer of a finished sign-in; ``second_factor`` is asked for a code if need be."""
    body = {"email": email, "password": password, **given(environment=environment)}
    answer = transport.call(Call("POST", "/v1/auth/login", body, is_anonymous=True))
    return finished(
        transport, answer, second_factor=second_factor, method=method, attempts=attempts
    )


def finished(
    transport: Transport,
    answer: Any,
    *,
    second_factor: Optional[SecondFactor],
    method: Optional[str],
    attempts: int,
) -> LoginAnswer:
    """Return the answer of a sign-in whose first factor is proven, after the second one."""
    if answer["status"] == "mfa_required":
        if second_factor is None:
            raise SecondFactorRequiredError([each["method"] for each in answer["methods"]])
        answer = prove(
            transport, second_factor, method=method, attempts=attempts, token=answer["mfa_token"]
        )
    if answer["status"] != "authenticated":
        raise EnrolmentRequiredError(
            "The organization requires a second factor: set one up in the console, then sign in."
        )
    return decode(LoginAnswer, answer)


def prove(
    transport: Transport,
    second_factor: SecondFactor,
    *,
    method: Optional[str],
    attempts: int,
    token: Optional[str] = None,
) -> Any:
    """Answer a challenge; a wrong code is asked for again while attempts are left.

    token: of a sign-in that waits for the factor; without it the session's.
    """
    ask = Call("GET", "/v1/auth/2fa/challenge", params=given(method=method), token=token)
    challenge = decode(Challenge, transport.call(ask))
    path = f"/v1/auth/2fa/challenge/{quote(challenge.challenge_id, safe='')}/verify"
    while True:
        attempts -= 1
        code = second_factor(challenge)
        try:
            return transport.call(Call("POST", path, {"code": code}, is_anonymous=True))
        except ProblemError as problem:
            if problem.code not in WRONG_CODE or attempts <= 0:
                raise
