"""Hostile bytes: whatever is sent as a credential, the answer is a refusal and comes quickly."""

import random
import time
from contextlib import suppress
from typing import Any

import cbor2
import pytest

from accounts.models import User
from tests.cast import signed_in
from tests.twofactor.holder import ask, log_in, pending
from tests.twofactor.webauthn.authenticator import AT, ED, Authenticator, b64, unb64
from tests.twofactor.webauthn.holder import (
    KeyHolder,
    begin_sign_in,
    end_sign_in,
    finish,
    send,
    start,
)
from twofactor.errors import MalformedCredential
from twofactor.webauthn import ceremony, responses

pytestmark = pytest.mark.django_db

ODD: list[Any] = [None, True, 0, -1, 2**53, 1.5, "", "x", "ä", "=", "AA==", "A", [], {}, [[]]]


def mutations(credential: dict[str, Any]) -> list[Any]:
    """Return the credential with each member left out, or replaced by something odd."""
    made: list[Any] = [{}, {"response": {}}]
    for name in ("id", "rawId", "type", "response"):
        made += [{key: value for key, value in credential.items() if key != name}]
        made += [credential | {name: odd} for odd in ODD]
    response = credential["response"]
    for name in response:
        if name == "transports":
            continue
        if name != "userHandle":
            less = {key: value for key, value in response.items() if key != name}
            made += [credential | {"response": less}]
        made += [
            credential | {"response": response | {name: odd}}
            for odd in ODD
            if not (name == "userHandle" and odd in (None, ""))
            and not (name == "signature" and odd == "")
        ]
    return made


def scrambled(raw: bytes, dice: random.Random) -> bytes:
    """Change, cut or lengthen some bytes."""
    changed = bytearray(raw)
    for _ in range(dice.randint(1, 4)):
        change = dice.randrange(3)
        at = dice.randrange(len(changed) or 1)
        if change == 0 and changed:
            changed[at] = dice.randrange(256)
        elif change == 1:
            del changed[at : at + dice.randint(1, 9)]
        else:
            changed[at:at] = dice.randbytes(dice.randint(1, 9))
    return bytes(changed)


def bomb(levels: int) -> bytes:
    """Return lists that each hold the one before twice, by shared reference (CBOR tags 28, 29)."""
    out = bytes([0x98, levels]) + b"\xd8\x1c\x82\x00\x00"
    for level in range(levels - 1):
        link = b"\xd8\x1d" + cbor2.dumps(level)
        out += b"\xd8\x1c\x82" + link + link
    return out


def test_a_malformed_registration_is_400(alice: User) -> None:
    caller = signed_in(alice)
    begun = start(caller)
    credential = Authenticator().create(begun.body["creation_options"])
    for changed in mutations(credential):
        answer = finish(caller, begun, changed)
        assert answer.status == 400, changed
        assert answer.code == "malformed_credential", changed
    assert finish(caller, begun, credential).status == 200


@pytest.mark.parametrize("odd", [None, True, 7, "x", [], ["x"]])
def test_a_credential_that_is_not_an_object_is_400_and_named(
    key_holder: KeyHolder, odd: Any
) -> None:
    answers = [
        finish(key_holder.caller, start(key_holder.caller), odd),
        send(ask(pending(log_in())), odd),
        end_sign_in(begin_sign_in(), odd),
    ]
    for answer in answers:
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert answer.body["errors"][0]["field"].startswith("credential")


def test_a_malformed_assertion_is_400_and_not_counted(key_holder: KeyHolder) -> None:
    challenge, begun = ask(pending(log_in())), begin_sign_in()
    key = key_holder.key
    credential = key.get(challenge.body["request_options"])
    for changed in mutations(credential):
        for answer in (send(challenge, changed), end_sign_in(begun, changed)):
            assert (answer.status, answer.code) == (400, "malformed_credential"), changed
    assert send(challenge, credential).status == 200
    assert end_sign_in(begun, key.get(begun.body["request_options"])).status == 200


def test_scrambled_registrations_are_refused_and_nothing_else(alice: User) -> None:
    dice = random.Random(7)  # noqa: S311 - the same mutations in each run
    options = start(signed_in(alice)).body["creation_options"]
    asked = ceremony.ExpectedResponse(
        unb64(options["challenge"]), "app.example.com", [Authenticator.origin]
    )
    made = [Authenticator(format=kind).create(options) for kind in ("none", "packed")]
    for _ in range(3000):
        credential = dice.choice(made)
        response = dict(credential["response"])
        name = dice.choice(["clientDataJSON", "attestationObject", "authData"])
        if name == "authData":
            # The wrapping stays whole, so that the inner parsers see the bytes.
            name, value = "attestationObject", cbor2.loads(unb64(response["attestationObject"]))
            value["authData"] = scrambled(value["authData"], dice)
            response[name] = b64(cbor2.dumps(value))
        else:
            response[name] = b64(scrambled(unb64(response[name]), dice))
        with suppress(MalformedCredential, ceremony.VerificationFailed):
            ceremony.register(responses.attestation(credential | {"response": response}), asked)


def test_scrambled_assertions_are_refused_and_nothing_else(key_holder: KeyHolder) -> None:
    dice = random.Random(11)  # noqa: S311 - the same mutations in each run
    options = ask(pending(log_in())).body["request_options"]
    asked = ceremony.ExpectedResponse(
        unb64(options["challenge"]), "app.example.com", [key_holder.key.origin]
    )
    credential = key_holder.key.get(options)
    public_key = bytes(key_holder.passkey.public_key)
    for _ in range(3000):
        response = dict(credential["response"])
        name = dice.choice(["clientDataJSON", "authenticatorData", "signature"])
        response[name] = b64(scrambled(unb64(response[name]), dice))
        if response == credential["response"]:
            continue
        with pytest.raises((MalformedCredential, ceremony.VerificationFailed)):
            ceremony.prove(
                responses.assertion(credential | {"response": response}),
                asked,
                public_key=public_key,
            )


def test_no_tag_gets_in_with_an_attestation_statement(alice: User) -> None:
    caller = signed_in(alice)
    begun = start(caller)
    made = Authenticator().create(begun.body["creation_options"])
    whole = cbor2.loads(unb64(made["response"]["attestationObject"]))
    parts = {name: cbor2.dumps(value) for name, value in whole.items()} | {"attStmt": bomb(200)}
    attested = b"\xa3" + b"".join(cbor2.dumps(name) + part for name, part in parts.items())
    made["response"]["attestationObject"] = b64(attested)
    assert finish(caller, begun, made).code == "malformed_credential"


def test_a_bomb_of_shared_references_costs_nothing(key_holder: KeyHolder) -> None:
    """py_webauthn writes such a list out again: a second for 20 levels, twice as long for 21."""
    began = time.perf_counter()
    for flags, head in [(AT, bytes(18)), (ED, b""), (AT | ED, bytes(18) + b"\xa0")]:
        data = bytes(32) + bytes([flags | 1]) + bytes(4) + head + bomb(200)
        attested = b64(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data}))
        registration = start(key_holder.caller)
        made = Authenticator().create(registration.body["creation_options"])
        made["response"]["attestationObject"] = attested
        assert finish(key_holder.caller, registration, made).code == "malformed_credential"
        challenge = ask(pending(log_in()))
        used = key_holder.key.get(challenge.body["request_options"])
        used["response"]["authenticatorData"] = b64(data)
        assert send(challenge, used).code == "malformed_credential"
        assert end_sign_in(begin_sign_in(), used).code == "malformed_credential"
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize(
    "data",
    [
        b"\xd8\x1c\x80",  # a tag
        b"\x9f\xff",  # an indefinite length
        b"\x81" * 50 + b"\x00",  # nested too deep
        b"\xbb" + b"\xff" * 8,  # 2^64 pairs
        b"\x5b" + b"\xff" * 8,  # 2^64 bytes
        b"\x19\x00",  # cut short
        b"\x82\x00",
        b"\x1c",  # reserved
    ],
)
def test_cbor_that_no_authenticator_writes_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"short|deep|CTAP2"):
        responses.check_cbor(data)


def test_cbor_that_authenticators_write_is_let_through() -> None:
    for value in [0, -1, 2**40, b"x" * 300, "text", [1, [2, {3: b""}]], {"a": True}, None, 1.5]:
        responses.check_cbor(cbor2.dumps(value))
    responses.check_cbor(b"")
