"""Sign-in without a password: the user allows it in a browser (RFC 7636, RFC 8252)."""

from typing import Optional

from zonal._async import signin
from zonal._async.signin import SecondFactor
from zonal._async.transport import AsyncTransport, Call
from zonal.bodies import given
from zonal.browser import BrowserSignIn, challenge_of, new_verifier
from zonal.decoding import decode
from zonal.types import LoginAnswer, TerminalStarted

PATH = "/v1/auth/terminal"


async def start(
    transport: AsyncTransport, *, host: str, port: Optional[int], environment: Optional[str]
) -> BrowserSignIn:
    """Return a request that waits for its user."""
    verifier = new_verifier()
    body = {
        "code_challenge": challenge_of(verifier),
        "host": host,
        **given(port=port, environment=environment),
    }
    answer = await transport.call(Call("POST", PATH, body, is_anonymous=True))
    return BrowserSignIn(decode(TerminalStarted, answer), verifier)


async def finish(
    transport: AsyncTransport,
    started: BrowserSignIn,
    code: str,
    *,
    second_factor: Optional[SecondFactor],
    attempts: int,
) -> LoginAnswer:
    """Exchange the code; ``second_factor`` is asked if one was set up while this waited."""
    body = {"code": code, "code_verifier": started.verifier}
    answer = await transport.call(Call("POST", f"{PATH}/token", body, is_anonymous=True))
    return await signin.finished(
        transport, answer, second_factor=second_factor, method=None, attempts=attempts
    )
