"""A person with a security key, speaking to the API."""

from dataclasses import dataclass
from typing import Any

from accounts.models import User
from tests.cast import Answer, Caller, signed_in
from tests.twofactor.webauthn.authenticator import TRUTH, Authenticator, Lies
from twofactor.models import Passkey

REGISTER = "/v1/auth/2fa/webauthn/register"
CREDENTIALS = "/v1/auth/2fa/webauthn/credentials"
PASSKEY = "/v1/auth/passkey"


@dataclass
class KeyHolder:
    """A user with one passkey; ``caller`` is the session it was registered in."""

    user: User
    caller: Caller
    key: Authenticator

    @property
    def passkey(self) -> Passkey:
        """The row."""
        return Passkey.objects.get(credential_id=self.key.raw_id)


def start(caller: Caller, **body: Any) -> Answer:
    """Begin to register."""
    return caller.post(REGISTER, body)


def finish(caller: Caller, begun: Answer, credential: Any, **more: Any) -> Answer:
    """Finish a registration with a browser's answer."""
    assert begun.status == 200, begun.body
    session_id = begun.body["session_data"]["session_id"]
    body = {"session_id": session_id, "credential": credential, **more}
    return caller.post(f"{REGISTER}/finish", body)


def register(caller: Caller, key: Authenticator, lies: Lies = TRUTH, **more: Any) -> Answer:
    """Register a key."""
    begun = start(caller)
    return finish(caller, begun, key.create(begun.body["creation_options"], lies), **more)


def with_passkey(user: User, key: Authenticator | None = None) -> KeyHolder:
    """Return a user who has registered a passkey through the API."""
    holder = KeyHolder(user, signed_in(user), key or Authenticator())
    answer = register(holder.caller, holder.key)
    assert answer.status == 200, answer.body
    return holder


def prove(challenge: Answer, key: Authenticator, lies: Lies = TRUTH) -> Answer:
    """Answer a challenge with a key, without a header."""
    assert challenge.status == 200, challenge.body
    return send(challenge, key.get(challenge.body["request_options"], lies))


def send(challenge: Answer, credential: Any) -> Answer:
    """Answer a challenge with a credential."""
    path = f"/v1/auth/2fa/challenge/{challenge.body['challenge_id']}/verify"
    return Caller().post(path, {"credential": credential})


def begin_sign_in(**body: Any) -> Answer:
    """Begin to sign in with a passkey."""
    return Caller().post(f"{PASSKEY}/start", body)


def end_sign_in(begun: Answer, credential: Any, **more: Any) -> Answer:
    """Answer the start of a sign-in with a credential."""
    assert begun.status == 200, begun.body
    body = {"challenge_id": begun.body["challenge_id"], "credential": credential, **more}
    return Caller().post(f"{PASSKEY}/finish", body)


def sign_in(key: Authenticator, lies: Lies = TRUTH, **more: Any) -> Answer:
    """Sign in with a passkey alone."""
    begun = begin_sign_in()
    assert begun.status == 200, begun.body
    return end_sign_in(begun, key.get(begun.body["request_options"], lies), **more)
